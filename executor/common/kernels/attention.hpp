// executor/common/kernels/attention.hpp — causal attention row by row, without the score matrix: running maximum and sum (Milakov and
// Gimelshein 2018), backward from the kept log-sums. No tensor cores: what a device without a fused library kernel falls back on, and
// what tests hold the fast kernels against.
//
// Rows of q, k and v lie side by side: row r of `qkv` has query_heads, kv_heads, kv_heads heads of `dim`, `width` elements in all.
#pragma once

#include <cmath>
#include <cstdint>

#include "executor/common/kernels/host_device.hpp"

namespace stepcast::executor::kernels {

struct AttentionRows {
  std::int64_t sequence = 0;
  std::int64_t query_heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t dim = 0;
  std::int64_t width = 0;
  const float* qkv = nullptr;

  STEPCAST_HOST_DEVICE std::int64_t kv_head(std::int64_t head) const { return head * kv_heads / query_heads; }
  STEPCAST_HOST_DEVICE const float* query(std::int64_t row, std::int64_t head) const { return qkv + row * width + head * dim; }
  STEPCAST_HOST_DEVICE const float* key(std::int64_t row, std::int64_t head) const { return qkv + row * width + (query_heads + head) * dim; }
  STEPCAST_HOST_DEVICE const float* value(std::int64_t row, std::int64_t head) const { return qkv + row * width + (query_heads + kv_heads + head) * dim; }
  STEPCAST_HOST_DEVICE float scale() const { return 1.0F / std::sqrt(static_cast<float>(dim)); }
  STEPCAST_HOST_DEVICE float score(const float* q, const float* k) const {
    float sum = 0.0F;
    for (std::int64_t d = 0; d < dim; ++d) sum += q[d] * k[d];
    return sum * scale();
  }
};

// Index over rows * query_heads. `log_sums` [batch, query_heads, sequence].
STEPCAST_HOST_DEVICE inline void attention_row(std::int64_t index, const AttentionRows& a, float* out, float* log_sums) {
  const std::int64_t row = index / a.query_heads;
  const std::int64_t head = index % a.query_heads;
  const std::int64_t first = row / a.sequence * a.sequence;
  const float* const q = a.query(row, head);
  float* const o = out + row * a.query_heads * a.dim + head * a.dim;
  float most = 0.0F;
  float sum = 0.0F;
  for (std::int64_t d = 0; d < a.dim; ++d) o[d] = 0.0F;
  for (std::int64_t j = first; j <= row; ++j) {
    const float score = a.score(q, a.key(j, a.kv_head(head)));
    if (j == first) most = score;
    const float larger = score > most ? score : most;
    const float shrink = std::exp(most - larger);
    const float weight = std::exp(score - larger);
    const float* const v = a.value(j, a.kv_head(head));
    for (std::int64_t d = 0; d < a.dim; ++d) o[d] = o[d] * shrink + weight * v[d];
    sum = sum * shrink + weight;
    most = larger;
  }
  for (std::int64_t d = 0; d < a.dim; ++d) o[d] /= sum;
  log_sums[((row / a.sequence) * a.query_heads + head) * a.sequence + row % a.sequence] = most + std::log(sum);
}

struct AttentionSlopes {
  const float* out = nullptr;       // forward's
  const float* log_sums = nullptr;
  const float* dout = nullptr;
  STEPCAST_HOST_DEVICE const float* at(const float* base, const AttentionRows& a, std::int64_t row, std::int64_t head) const {
    return base + (row * a.query_heads + head) * a.dim;
  }
  // Weight of a pair and the slope of its score.
  STEPCAST_HOST_DEVICE void pair(const AttentionRows& a, std::int64_t i, std::int64_t j, std::int64_t head, float* weight, float* slope) const {
    const float* const d_o = at(dout, a, i, head);
    const float* const o = at(out, a, i, head);
    const float* const v = a.value(j, a.kv_head(head));
    const float log_sum = log_sums[((i / a.sequence) * a.query_heads + head) * a.sequence + i % a.sequence];
    *weight = std::exp(a.score(a.query(i, head), a.key(j, a.kv_head(head))) - log_sum);
    float along = 0.0F;
    for (std::int64_t d = 0; d < a.dim; ++d) along += d_o[d] * (v[d] - o[d]);
    *slope = *weight * along * a.scale();
  }
};

// Index over rows * query_heads: the query's part of a row of dqkv.
STEPCAST_HOST_DEVICE inline void attention_query_gradient(std::int64_t index, const AttentionRows& a, const AttentionSlopes& s, float* dqkv) {
  const std::int64_t row = index / a.query_heads;
  const std::int64_t head = index % a.query_heads;
  float* const dq = dqkv + row * a.width + head * a.dim;
  for (std::int64_t d = 0; d < a.dim; ++d) dq[d] = 0.0F;
  for (std::int64_t j = row / a.sequence * a.sequence; j <= row; ++j) {
    float weight = 0.0F;
    float slope = 0.0F;
    s.pair(a, row, j, head, &weight, &slope);
    const float* const k = a.key(j, a.kv_head(head));
    for (std::int64_t d = 0; d < a.dim; ++d) dq[d] += slope * k[d];
  }
}

// Index over rows * kv_heads: the key's and value's parts.
STEPCAST_HOST_DEVICE inline void attention_key_gradient(std::int64_t index, const AttentionRows& a, const AttentionSlopes& s, float* dqkv) {
  const std::int64_t row = index / a.kv_heads;
  const std::int64_t kv = index % a.kv_heads;
  float* const dk = dqkv + row * a.width + (a.query_heads + kv) * a.dim;
  float* const dv = dk + a.kv_heads * a.dim;
  for (std::int64_t d = 0; d < a.dim; ++d) dk[d] = dv[d] = 0.0F;
  const std::int64_t end = (row / a.sequence + 1) * a.sequence;
  for (std::int64_t head = 0; head < a.query_heads; ++head) {
    if (a.kv_head(head) != kv) continue;
    for (std::int64_t i = row; i < end; ++i) {
      float weight = 0.0F;
      float slope = 0.0F;
      s.pair(a, i, row, head, &weight, &slope);
      const float* const q = a.query(i, head);
      const float* const d_o = s.at(s.dout, a, i, head);
      for (std::int64_t d = 0; d < a.dim; ++d) {
        dk[d] += slope * q[d];
        dv[d] += weight * d_o[d];
      }
    }
  }
}

}  // namespace stepcast::executor::kernels
