// executor/cpu/attention.hpp — fused attention, forward and backward, fp32: blocks of queries against the keys that they see, so that
// the score matrix never exists as a whole; the backward pass computes the scores again from the kept row statistics, as
// FlashAttention does (Dao et al. 2022, algorithms 2 and 4).
//
// Shapes, row-major: Q, O [batch, query_length, query_heads, dim]; K, V [batch, kv_length, kv_heads, dim], O and V with value_dim. Rows of
// Q, K and V may lie further apart than they are long (`stride`, elements; 0: side by side).
// Queries are the last of the keys where lengths differ (causal). Head h reads kv head h * kv_heads / query_heads.
#pragma once

#include "sim/plan/kernel.hpp"

namespace stepcast::executor {

struct AttentionInputs {
  const float* q = nullptr;
  const float* k = nullptr;
  const float* v = nullptr;
  std::int64_t stride = 0;
};
struct AttentionGradients {
  float* q = nullptr;
  float* k = nullptr;
  float* v = nullptr;
  std::int64_t stride = 0;
};

// `log_sums` [batch, query_heads, query_length]: log of the sum of exponentials of each row, kept for the backward pass.
void attention_forward(const plan::AttentionShape& shape, const AttentionInputs& in, float* out, float* log_sums);
// Overwrites the gradients.
void attention_backward(const plan::AttentionShape& shape, const AttentionInputs& in, const float* out, const float* log_sums,
                        const float* out_gradient, const AttentionGradients& gradients);

}  // namespace stepcast::executor
