#include <algorithm>

#include "models/workload/local_dims.hpp"
#include "models/workload/operators.hpp"

namespace stepcast::workload {

namespace {

double wide(std::int64_t value) { return static_cast<double>(value); }

double attention_weights(const ModelShape& shape) {
  const double h = wide(shape.hidden);
  if (!shape.latent) {
    return h * wide(2 * shape.heads * shape.head_dim + 2 * shape.kv_heads * shape.head_dim);
  }
  const LatentAttention& l = *shape.latent;
  const double query = wide(shape.heads * (l.nope_dim + l.rope_dim));
  const double q = l.q_rank > 0 ? wide(l.q_rank) * (h + query) : h * query;
  return q + h * wide(l.kv_rank + l.rope_dim) + wide(l.kv_rank) * wide(shape.heads * (l.nope_dim + l.value_dim)) +
         h * wide(shape.heads * l.value_dim);
}

// Multiply-adds per token outside the attention scores: one per matrix weight the token meets, the
// router's few left out (Megatron-LM num_floating_point_operations).
double matrix_weights(const ModelShape& shape, std::int64_t layer) {
  const double mlp = (shape.gated_mlp ? 3 : 2) * wide(shape.hidden);
  if (!has_experts(shape, layer)) return attention_weights(shape) + mlp * wide(shape.ffn);
  const ExpertShape& e = *shape.experts;
  return attention_weights(shape) + mlp * wide(e.top_k * e.ffn + e.shared_ffn);
}

double all_matrix_weights(const ModelShape& shape) {
  const double h = wide(shape.hidden);
  const double logits = wide(shape.vocab) * h;
  double weights = logits;
  for (std::int64_t layer = 0; layer < shape.layers; ++layer) weights += matrix_weights(shape, layer);
  for (std::int64_t i = 0; i < shape.predicted_ahead; ++i)
    weights += 2 * h * h + matrix_weights(shape, shape.layers - 1) + logits;
  return weights;
}

// Query-key pairs of all layers, per head and sequence.
double score_pairs(const ModelShape& shape, std::int64_t sequence, bool causal) {
  const double s = static_cast<double>(sequence);
  double pairs = 0;
  for (std::int64_t layer = 0; layer < shape.layers; ++layer)
    pairs += causal ? causal_pairs(sequence, window_of(shape, layer)) : s * s;
  pairs += wide(shape.predicted_ahead) * (causal ? causal_pairs(sequence, std::nullopt) : s * s);
  return pairs;
}

}  // namespace

Flops model_flops_per_sequence(const ModelShape& shape, std::int64_t sequence,
                               FlopsConvention convention, const std::optional<Adapters>& adapters) {
  const double s = wide(sequence);
  const double images = has_images(shape) ? vision_flops(*shape.vision) : 0.0;
  // What `weights` that are frozen save a token, less what adapters add.
  const auto saved = [&](double weights) {
    return adapters ? 2 * weights - 6 * wide(count_adapters(shape, *adapters).active) : 0.0;
  };
  // Of queries times keys, and of scores times values: twice the width where both are as wide.
  const double width = wide(shape.heads * (shape.head_dim + value_dim_of(shape)));
  switch (convention) {
    case FlopsConvention::kMegatron:
    case FlopsConvention::kLlama: {
      const double pairs = score_pairs(shape, sequence, convention == FlopsConvention::kLlama);
      return Flops::from_si(3 * (2 * s * all_matrix_weights(shape) + 2 * width * pairs) - s * saved(all_matrix_weights(shape)) + images);
    }
    case FlopsConvention::kPalm: {
      const ParameterCount count = count_parameters(shape);
      const double logits = wide(shape.vocab) * wide(shape.hidden);
      const double n = wide(count.active - count.embedding - count.head - count.vision) + logits;
      const double blocks = wide(shape.layers + shape.predicted_ahead);
      return Flops::from_si(s * (6 * n + 6 * blocks * width * s) - s * saved(n) + images);
    }
  }
  return {};
}

const char* name_of(FlopsConvention convention) {
  switch (convention) {
    case FlopsConvention::kMegatron:
      return "megatron";
    case FlopsConvention::kPalm:
      return "palm";
    case FlopsConvention::kLlama:
      return "llama";
  }
  return "";
}

}  // namespace stepcast::workload
