// models/workload/local_dims.hpp — the sizes that one tensor-parallel rank sees, derived once.
// Private to models/workload.
//
// Symbols  s sequence, b micro-batch, t tensor-parallel degree, a heads, h hidden
// Ignores  uneven shards: a width that t does not divide is rounded up to a whole shard
#pragma once

#include <cstdint>
#include <optional>

#include "models/workload/operators.hpp"

namespace stepcast::workload {

struct LocalDims {
  std::int64_t t = 1;
  bool sequence_parallel = false;  // and t > 1
  std::int64_t batch = 0;
  std::int64_t sequence = 0;     // s / c: the tokens of a sequence that this rank holds
  std::int64_t context = 1;      // c, context-parallel degree
  std::int64_t rows = 0;         // b s / c: tokens inside the column/row-parallel pair
  std::int64_t norm_rows = 0;    // rows / t under sequence parallelism, else rows: tokens outside it
  std::int64_t hidden = 0;
  std::int64_t q_heads = 0;      // a / t
  std::int64_t kv_heads = 0;     // max(kv / t, 1): replicated when there are fewer than t
  std::int64_t head_dim = 0;
  std::int64_t value_dim = 0;
  std::int64_t q_width = 0;
  std::int64_t kv_width = 0;     // of K alone
  std::int64_t v_width = 0;
  std::int64_t qkv_width = 0;
  std::int64_t out_width = 0;    // of all heads' outputs
  std::int64_t ffn = 0;          // f / t, of a dense MLP
  std::int64_t up_width = 0;     // 2 f / t with a gate
  std::int64_t vocab = 0;        // padded, / t
  std::int64_t scores = 0;       // b a/t s s: elements of the unfused attention matrix
  std::int64_t bytes = 2;        // of an activation
  std::int64_t gemm_bytes = 2;   // of a GEMM input
  std::int64_t gradient_bytes = 4;  // of an accumulated weight gradient
  plan::Dtype dtype = plan::Dtype::kBf16;
  plan::Dtype gemm_dtype = plan::Dtype::kBf16;
};

LocalDims local_dims(const ModelShape& shape, const BlockOptions& options);

// What one rank has to do with a layer's experts.
struct ExpertDims {
  std::int64_t tokens = 0;   // that this rank routes
  std::int64_t local = 0;    // experts on this rank
  std::int64_t sent = 0;     // rows to experts anywhere
  std::int64_t arrived = 0;  // rows from all ranks, before the expert tensor-parallel ranks share theirs
  std::int64_t rows = 0;     // through this rank's experts: of one, on the average of the busiest rank
  std::int64_t ffn = 0;      // f / expert tensor parallel
  std::int64_t up_width = 0;
  std::int64_t shared_ffn = 0;  // of the shared experts, / t
  std::int64_t shared_up_width = 0;
  std::int64_t dispatch_bytes = 2;  // of an element on its way to an expert
  [[nodiscard]] std::int64_t all_rows() const { return local * rows; }
};
ExpertDims expert_dims(const ModelShape& shape, const BlockOptions& options, const LocalDims& dims);

// Query-key pairs of one causal head: s^2/2, or s w - w^2/2 with a window of w < s keys.
double causal_pairs(std::int64_t sequence, std::optional<std::int64_t> window);

}  // namespace stepcast::workload
