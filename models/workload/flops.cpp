#include <algorithm>

#include "models/workload/local_dims.hpp"
#include "models/workload/operators.hpp"

namespace stepcast::workload {

namespace {

// Multiply-adds per token outside the attention scores: one per matrix weight the token meets.
double matrix_weights_per_layer(const ModelShape& shape) {
  const double h = static_cast<double>(shape.hidden);
  const double query = static_cast<double>(shape.heads * shape.head_dim);
  const double key_value = static_cast<double>(2 * shape.kv_heads * shape.head_dim);
  return h * (2 * query + key_value) +
         (shape.gated_mlp ? 3 : 2) * h * static_cast<double>(shape.ffn);
}

// Query-key pairs of all layers, per head and sequence.
double score_pairs(const ModelShape& shape, std::int64_t sequence, bool causal) {
  const double s = static_cast<double>(sequence);
  double pairs = 0;
  for (std::int64_t layer = 0; layer < shape.layers; ++layer)
    pairs += causal ? causal_pairs(sequence, window_of(shape, layer)) : s * s;
  return pairs;
}

}  // namespace

Flops model_flops_per_sequence(const ModelShape& shape, std::int64_t sequence,
                               FlopsConvention convention) {
  const double s = static_cast<double>(sequence);
  const double layers = static_cast<double>(shape.layers);
  const double width = static_cast<double>(shape.heads * shape.head_dim);
  const double logits = static_cast<double>(shape.vocab) * static_cast<double>(shape.hidden);
  switch (convention) {
    case FlopsConvention::kMegatron:
    case FlopsConvention::kLlama: {
      const double pairs = score_pairs(shape, sequence, convention == FlopsConvention::kLlama);
      const double forward =
          2 * s * (layers * matrix_weights_per_layer(shape) + logits) + 4 * width * pairs;
      return Flops::from_si(3 * forward);
    }
    case FlopsConvention::kPalm: {
      const ParameterCount count = count_parameters(shape);
      const double n =
          static_cast<double>(shape.layers * count.per_layer + count.final_norm) + logits;
      return Flops::from_si(s * (6 * n + 12 * layers * width * s));
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
