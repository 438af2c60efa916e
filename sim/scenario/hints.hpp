// sim/scenario/hints.hpp — where a key that is unknown here was probably meant to go.
#pragma once

#include <string>
#include <vector>

namespace stepcast::scenario {

struct KeyHint {
  std::string text;                // "'sequence' is a key of model", "here it is called 'parallel.tp'"
  std::vector<std::string> paths;  // the keys it names
};

// For the last part of an unknown key: the same key of another section, or our key for a word of
// Megatron-LM, DeepSpeed, Hugging Face or torchtitan. Empty when nothing is known.
KeyHint hint_for_key(const std::string& key);

}  // namespace stepcast::scenario
