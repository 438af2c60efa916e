// models/workload/model_shape.hpp — the shape of a decoder-only transformer, dense or with experts:
// everything that decides its FLOPs, bytes and parameters, and nothing that decides how it is cut or run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/workload/vision.hpp"

namespace stepcast::workload {

enum class NormKind : std::uint8_t { kLayerNorm, kRmsNorm };
enum class Activation : std::uint8_t { kGelu, kGeluTanh, kSilu, kRelu };
enum class Position : std::uint8_t { kLearned, kRotary, kAlibi, kNone };

// The MLP of a layer as a mixture: a router sends each token to `top_k` of `count` experts.
struct ExpertShape {
  std::int64_t count = 0;       // routed experts of a layer
  std::int64_t top_k = 1;
  std::int64_t ffn = 0;         // width of one projection of one routed expert
  std::int64_t shared_ffn = 0;  // width of the experts that every token visits, together; 0: none
  bool shared_gate = false;     // Qwen2-MoE: a sigmoid gate on what the shared experts give
  bool bias = false;            // gpt-oss: biases of the experts' projections
  bool router_bias = false;     // one number an expert: gpt-oss's logits, DeepSeek-V3's load correction
  std::int64_t node_limit = 0;  // DeepSeek: a token's experts lie in at most this many groups; 0: no limit
  friend bool operator==(const ExpertShape&, const ExpertShape&) = default;
};

// Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434 section 2.1): queries, and keys with values,
// are made from narrow latents; one rotated key part of `rope_dim` is shared by all heads.
struct LatentAttention {
  std::int64_t q_rank = 0;  // 0: queries come straight from the hidden state
  std::int64_t kv_rank = 0;
  std::int64_t nope_dim = 0;  // of a query or key head, not rotated
  std::int64_t rope_dim = 0;
  std::int64_t value_dim = 0;
  friend bool operator==(const LatentAttention&, const LatentAttention&) = default;
};

struct ModelShape {
  std::string name;
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;   // = heads: MHA; 1: MQA; between: GQA
  std::int64_t head_dim = 0;   // of queries and keys; values are as wide but in latent attention
  std::int64_t ffn = 0;        // width of one projection of a dense MLP
  std::int64_t vocab = 0;      // as configured, before padding
  bool gated_mlp = false;      // three matrices (SwiGLU, GeGLU), else two
  bool tied_embeddings = false;
  bool parallel_block = false; // attention and MLP read the same input (GPT-NeoX, Falcon)
  bool attention_bias = false; // biases of the attention projections
  bool qkv_bias_only = false;  // Qwen2: biases on Q, K, V but not on the output projection
  bool mlp_bias = false;
  bool qk_norm = false;        // Qwen3, Gemma 3: norm on query and key heads
  bool qk_norm_whole = false;  // MiniMax, OLMoE: one norm over all query heads, one over all key heads
  bool qk_norm_gain = true;    // Llama 4's has no parameters
  bool attention_sinks = false;  // gpt-oss: one learned score a head
  bool head_bias = false;      // Phi-1/2: bias of the logits projection
  NormKind norm = NormKind::kRmsNorm;
  bool norm_bias = true;       // of LayerNorm only; MPT has none
  bool embedding_norm = false; // BLOOM: LayerNorm on the embedding output
  int norms_per_layer = 2;     // Gemma 2/3: 4 (before and after each half); Falcon-7B, Phi-2: 1
  Activation activation = Activation::kSilu;
  Position position = Position::kRotary;
  std::int64_t max_positions = 0;             // rows of the learned position table
  std::optional<std::int64_t> sliding_window; // tokens
  bool window_is_chunk = false;               // Llama 4: the sequence is cut into windows that do not overlap
  // Which layers use the sliding window; empty with a window set: all of them.
  std::vector<bool> layer_is_sliding;
  std::optional<LatentAttention> latent;
  std::optional<ExpertShape> experts;
  // Which layers have experts; empty with experts set: all of them.
  std::vector<bool> layer_has_experts;
  bool bidirectional = false;        // every token sees every other (encoders)
  std::optional<VisionTower> vision;  // of a multimodal model
  std::int64_t predicted_ahead = 0;  // multi-token prediction modules (DeepSeek-V3 section 2.2) behind the last layer
  std::string note;            // what the reader left out, e.g. "text part of a multimodal model"
};

// Parameters by part, exact, embeddings unpadded; tied embeddings count once.
struct ParameterCount {
  std::int64_t embedding = 0;  // token and position tables
  std::int64_t layers = 0;     // all of them
  std::int64_t final_norm = 0;
  std::int64_t head = 0;       // 0 when tied
  std::int64_t vision = 0;     // of the vision encoder and its projector
  std::int64_t predictors = 0; // of further tokens, without the tables they share
  std::int64_t total = 0;
  std::int64_t active = 0;     // of `total`, what one token meets: top_k experts of each layer
};
ParameterCount count_parameters(const ModelShape& shape);

// Of one layer; `routed`: of the experts that are routed to, all of them.
struct LayerParameters {
  std::int64_t total = 0;
  std::int64_t routed = 0;
};
LayerParameters layer_parameters(const ModelShape& shape, std::int64_t layer);

constexpr bool has_qkv_bias(const ModelShape& shape) { return shape.attention_bias || shape.qkv_bias_only; }
constexpr bool has_output_bias(const ModelShape& shape) { return shape.attention_bias && !shape.qkv_bias_only; }
// Parameters of one norm over `width` elements: gain, and shift where there is one.
constexpr std::int64_t norm_parameters(const ModelShape& shape, std::int64_t width) {
  return shape.norm == NormKind::kLayerNorm && shape.norm_bias ? 2 * width : width;
}
// Of the norms on query and key heads that are this wide side by side.
std::int64_t qk_norm_parameters(const ModelShape& shape, std::int64_t query_width, std::int64_t key_width);
// Width of a value head.
constexpr std::int64_t value_dim_of(const ModelShape& shape) {
  return shape.latent ? shape.latent->value_dim : shape.head_dim;
}
bool has_experts(const ModelShape& shape, std::int64_t layer);
// The vision encoder is there, and has something to see.
inline bool has_images(const ModelShape& shape) { return shape.vision && shape.vision->images > 0; }
// The window of one layer; empty where the layer sees everything before it.
std::optional<std::int64_t> window_of(const ModelShape& shape, std::int64_t layer);

const char* name_of(NormKind kind);
const char* name_of(Activation activation);
const char* name_of(Position position);

}  // namespace stepcast::workload
