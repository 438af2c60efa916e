// calibration/truth_layers.hpp — what a truth row says about experts and attention, in a scenario's words.
// The phrases are those of the tables' column attn_kind: "MLA(q_lora=1536,kv_lora=512,rope=64)",
// "3 dense layers", "1 shared expert", "shared ffn 3072", "MoE every 2nd layer", "alternating sliding-window",
// "chunked attention".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace stepcast::calibration {

struct LayerPhrases {
  std::string attention;  // attn_kind
  std::optional<std::int64_t> experts;
  std::optional<std::int64_t> top_k;
  std::optional<std::int64_t> expert_ffn;
  std::optional<std::int64_t> head_dim;
  std::optional<std::int64_t> ffn;
  std::int64_t sequence = 0;
};

struct LayerWords {
  std::string shape;    // ", experts: 256, top_k: 8": keys of model.shape
  bool latent = false;  // which has its own head widths
  std::string refusal;  // empty: all phrases are understood
  std::vector<std::string> assumed;
};

LayerWords layer_words(const LayerPhrases& phrases);

}  // namespace stepcast::calibration
