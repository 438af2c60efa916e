// calibration/truth_recompute.hpp — from the recomputation that a row of published runs states to the
// scenario's words.
// Forms     "none", "full", "selective", "selective (attention core)"; "selective modules=[...]" in
//           Megatron-Core's words; "selective (op)", torchtitan's; "selective: a,b", llm.q's options att (its
//           attention block), qkv, ffn (up projection and what follows), swiglu, norm, block (all of it)
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace stepcast::calibration {

// "recompute: selective, recompute_modules: [layernorm]"; empty: a form that is not known.
std::optional<std::string> recompute_words(std::string_view stated);

}  // namespace stepcast::calibration
