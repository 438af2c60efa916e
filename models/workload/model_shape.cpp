#include "models/workload/model_shape.hpp"

namespace stepcast::workload {

namespace {

std::int64_t latent_parameters(const ModelShape& shape) {
  const LatentAttention& l = *shape.latent;
  const std::int64_t h = shape.hidden;
  const std::int64_t query = shape.heads * (l.nope_dim + l.rope_dim);
  std::int64_t count = l.q_rank > 0 ? h * l.q_rank + norm_parameters(shape, l.q_rank) + l.q_rank * query : h * query;
  count += h * (l.kv_rank + l.rope_dim) + norm_parameters(shape, l.kv_rank);
  count += l.kv_rank * shape.heads * (l.nope_dim + l.value_dim);
  count += shape.heads * l.value_dim * h;
  // The reference code puts biases on the projections into the latents and out of the heads.
  if (shape.attention_bias) count += l.q_rank + l.kv_rank + l.rope_dim + h;
  return count;
}

std::int64_t attention_parameters(const ModelShape& shape) {
  if (shape.latent) return latent_parameters(shape);
  const std::int64_t h = shape.hidden;
  const std::int64_t query = shape.heads * shape.head_dim;
  const std::int64_t key = shape.kv_heads * shape.head_dim;
  std::int64_t count = h * (query + 2 * key) + query * h;
  if (has_qkv_bias(shape)) count += query + 2 * key;
  if (has_output_bias(shape)) count += h;
  count += qk_norm_parameters(shape, query, key);
  if (shape.attention_sinks) count += shape.heads;
  return count;
}

// Of a two- or three-matrix MLP of this width.
std::int64_t mlp_parameters(const ModelShape& shape, std::int64_t width, bool bias) {
  const std::int64_t up = (shape.gated_mlp ? 2 : 1) * width;
  return shape.hidden * (up + width) + (bias ? up + shape.hidden : 0);
}

}  // namespace

std::int64_t qk_norm_parameters(const ModelShape& shape, std::int64_t query_width, std::int64_t key_width) {
  if (!shape.qk_norm || !shape.qk_norm_gain) return 0;
  if (shape.qk_norm_whole) return norm_parameters(shape, query_width) + norm_parameters(shape, key_width);
  return 2 * norm_parameters(shape, shape.head_dim);
}

bool has_experts(const ModelShape& shape, std::int64_t layer) {
  if (!shape.experts) return false;
  const auto index = static_cast<std::size_t>(layer);
  return shape.layer_has_experts.empty() ||
         (index < shape.layer_has_experts.size() && shape.layer_has_experts[index]);
}

LayerParameters layer_parameters(const ModelShape& shape, std::int64_t layer) {
  LayerParameters count;
  count.total = attention_parameters(shape) + shape.norms_per_layer * norm_parameters(shape, shape.hidden);
  if (!has_experts(shape, layer)) {
    count.total += mlp_parameters(shape, shape.ffn, shape.mlp_bias);
    return count;
  }
  const ExpertShape& e = *shape.experts;
  count.routed = e.count * mlp_parameters(shape, e.ffn, e.bias);
  count.total += count.routed + e.count * shape.hidden + (e.router_bias ? e.count : 0);
  if (e.shared_ffn > 0) count.total += mlp_parameters(shape, e.shared_ffn, e.bias) + (e.shared_gate ? shape.hidden : 0);
  return count;
}

ParameterCount count_parameters(const ModelShape& shape) {
  const std::int64_t h = shape.hidden;
  ParameterCount count;
  count.embedding = shape.vocab * h;
  if (shape.position == Position::kLearned) count.embedding += shape.max_positions * h;
  if (shape.embedding_norm) count.embedding += norm_parameters(shape, h);
  count.final_norm = norm_parameters(shape, h);
  count.head = (shape.tied_embeddings ? 0 : shape.vocab * h) + (shape.head_bias ? shape.vocab : 0);
  std::int64_t idle = 0;  // of experts that a token does not visit
  const auto layer = [&](std::int64_t index) {
    const LayerParameters parameters = layer_parameters(shape, index);
    if (parameters.routed > 0)
      idle += parameters.routed / shape.experts->count * (shape.experts->count - shape.experts->top_k);
    return parameters.total;
  };
  for (std::int64_t i = 0; i < shape.layers; ++i) count.layers += layer(i);
  // Two norms and a projection of both inputs, a layer like the last one, a norm before the shared head.
  for (std::int64_t i = 0; i < shape.predicted_ahead; ++i)
    count.predictors += 2 * h * h + 3 * norm_parameters(shape, h) + layer(shape.layers - 1);
  if (has_images(shape)) count.vision = vision_parameters(*shape.vision);
  count.total = count.embedding + count.layers + count.final_norm + count.head + count.predictors + count.vision;
  count.active = count.total - idle;
  return count;
}

std::optional<std::int64_t> window_of(const ModelShape& shape, std::int64_t layer) {
  if (!shape.sliding_window) return std::nullopt;
  const auto index = static_cast<std::size_t>(layer);
  if (!shape.layer_is_sliding.empty() &&
      !(index < shape.layer_is_sliding.size() && shape.layer_is_sliding[index]))
    return std::nullopt;
  return shape.sliding_window;
}

const char* name_of(NormKind kind) {
  return kind == NormKind::kLayerNorm ? "layernorm" : "rmsnorm";
}

const char* name_of(Activation activation) {
  switch (activation) {
    case Activation::kGelu:
      return "gelu";
    case Activation::kGeluTanh:
      return "gelu_tanh";
    case Activation::kSilu:
      return "silu";
    case Activation::kRelu:
      return "relu";
  }
  return "";
}

const char* name_of(Position position) {
  switch (position) {
    case Position::kLearned:
      return "learned";
    case Position::kRotary:
      return "rotary";
    case Position::kAlibi:
      return "alibi";
    case Position::kNone:
      return "none";
  }
  return "";
}

}  // namespace stepcast::workload
