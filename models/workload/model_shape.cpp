#include "models/workload/model_shape.hpp"

namespace stepcast::workload {

ParameterCount count_parameters(const ModelShape& shape) {
  const std::int64_t h = shape.hidden;
  const std::int64_t query = shape.heads * shape.head_dim;
  const std::int64_t key_value = 2 * shape.kv_heads * shape.head_dim;

  std::int64_t layer = h * (query + key_value) + query * h;
  if (has_qkv_bias(shape)) layer += query + key_value;
  if (has_output_bias(shape)) layer += h;
  layer += (shape.gated_mlp ? 3 : 2) * h * shape.ffn;
  if (shape.mlp_bias) layer += (shape.gated_mlp ? 2 : 1) * shape.ffn + h;
  layer += shape.norms_per_layer * norm_parameters(shape, h);
  if (shape.qk_norm) layer += 2 * norm_parameters(shape, shape.head_dim);

  ParameterCount count;
  count.embedding = shape.vocab * h;
  if (shape.position == Position::kLearned) count.embedding += shape.max_positions * h;
  if (shape.embedding_norm) count.embedding += norm_parameters(shape, h);
  count.per_layer = layer;
  count.final_norm = norm_parameters(shape, h);
  count.head = (shape.tied_embeddings ? 0 : shape.vocab * h) + (shape.head_bias ? shape.vocab : 0);
  count.total = count.embedding + shape.layers * layer + count.final_norm + count.head;
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
