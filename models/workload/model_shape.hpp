// models/workload/model_shape.hpp — the shape of a dense decoder-only transformer: everything that
// decides its FLOPs, bytes and parameters, and nothing that decides how it is cut or run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace stepcast::workload {

enum class NormKind : std::uint8_t { kLayerNorm, kRmsNorm };
enum class Activation : std::uint8_t { kGelu, kGeluTanh, kSilu, kRelu };
enum class Position : std::uint8_t { kLearned, kRotary, kAlibi, kNone };

struct ModelShape {
  std::string name;
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;   // = heads: MHA; 1: MQA; between: GQA
  std::int64_t head_dim = 0;   // of queries and keys; values are as wide
  std::int64_t ffn = 0;        // width of one MLP projection
  std::int64_t vocab = 0;      // as configured, before padding
  bool gated_mlp = false;      // three matrices (SwiGLU, GeGLU), else two
  bool tied_embeddings = false;
  bool parallel_block = false; // attention and MLP read the same input (GPT-NeoX, Falcon)
  bool attention_bias = false; // biases of the attention projections
  bool qkv_bias_only = false;  // Qwen2: biases on Q, K, V but not on the output projection
  bool mlp_bias = false;
  bool qk_norm = false;        // Qwen3, Gemma 3: norm on query and key heads
  bool head_bias = false;      // Phi-1/2: bias of the logits projection
  NormKind norm = NormKind::kRmsNorm;
  bool norm_bias = true;       // of LayerNorm only; MPT has none
  bool embedding_norm = false; // BLOOM: LayerNorm on the embedding output
  int norms_per_layer = 2;     // Gemma 2/3: 4 (before and after each half); Falcon-7B, Phi-2: 1
  Activation activation = Activation::kSilu;
  Position position = Position::kRotary;
  std::int64_t max_positions = 0;             // rows of the learned position table
  std::optional<std::int64_t> sliding_window; // tokens
  // Which layers use the sliding window; empty with a window set: all of them.
  std::vector<bool> layer_is_sliding;
  std::string note;            // what the reader left out, e.g. "text part of a multimodal model"
};

// Parameters by part, exact, embeddings unpadded; tied embeddings count once.
struct ParameterCount {
  std::int64_t embedding = 0;  // token and position tables
  std::int64_t per_layer = 0;
  std::int64_t final_norm = 0;
  std::int64_t head = 0;       // 0 when tied
  std::int64_t total = 0;
};
ParameterCount count_parameters(const ModelShape& shape);

constexpr bool has_qkv_bias(const ModelShape& shape) { return shape.attention_bias || shape.qkv_bias_only; }
constexpr bool has_output_bias(const ModelShape& shape) { return shape.attention_bias && !shape.qkv_bias_only; }
// Parameters of one norm over `width` elements: gain, and shift where there is one.
constexpr std::int64_t norm_parameters(const ModelShape& shape, std::int64_t width) {
  return shape.norm == NormKind::kLayerNorm && shape.norm_bias ? 2 * width : width;
}
// The window of one layer; empty where the layer sees everything before it.
std::optional<std::int64_t> window_of(const ModelShape& shape, std::int64_t layer);

const char* name_of(NormKind kind);
const char* name_of(Activation activation);
const char* name_of(Position position);

}  // namespace stepcast::workload
