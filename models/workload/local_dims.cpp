#include "models/workload/local_dims.hpp"

#include <algorithm>

#include "sim/base/check.hpp"

namespace stepcast::workload {

namespace {

std::int64_t shard(std::int64_t width, std::int64_t t) {
  return (width + t - 1) / t;
}

}  // namespace

LocalDims local_dims(const ModelShape& shape, const BlockOptions& options) {
  SIM_CHECK(options.tensor_parallel >= 1 && options.micro_batch >= 1 && options.sequence >= 1,
            options.tensor_parallel, options.micro_batch, options.sequence);
  LocalDims d;
  d.t = options.tensor_parallel;
  d.sequence_parallel = options.sequence_parallel && d.t > 1;
  d.batch = options.micro_batch;
  d.context = options.context_parallel;
  d.sequence = shard(options.sequence, d.context);
  d.rows = d.batch * d.sequence;
  d.norm_rows = d.sequence_parallel ? shard(d.rows, d.t) : d.rows;
  d.hidden = shape.hidden;
  d.q_heads = shard(shape.heads, d.t);
  d.kv_heads = std::max<std::int64_t>(shard(shape.kv_heads, d.t), 1);
  d.head_dim = shape.head_dim;
  d.value_dim = value_dim_of(shape);
  d.q_width = d.q_heads * d.head_dim;
  d.kv_width = d.kv_heads * d.head_dim;
  d.v_width = d.kv_heads * d.value_dim;
  d.qkv_width = d.q_width + d.kv_width + d.v_width;
  d.out_width = d.q_heads * d.value_dim;
  d.ffn = shard(shape.ffn, d.t);
  d.up_width = shape.gated_mlp ? 2 * d.ffn : d.ffn;
  d.vocab = padded_vocab(shape, options) / d.t;
  d.scores = d.batch * d.q_heads * d.sequence * d.sequence;
  d.dtype = options.dtype;
  d.gemm_dtype = options.gemm_dtype.value_or(options.dtype);
  d.bytes = plan::element_bytes(d.dtype);
  d.gemm_bytes = plan::element_bytes(d.gemm_dtype);
  d.gradient_bytes = plan::element_bytes(options.gradient_dtype);
  return d;
}

ExpertDims expert_dims(const ModelShape& shape, const BlockOptions& options, const LocalDims& dims) {
  const ExpertShape& e = *shape.experts;
  const std::int64_t gate = shape.gated_mlp ? 2 : 1;
  const RoutedRows routed =
      routed_rows(dims.norm_rows, e.count, e.top_k, options.expert_parallel, options.routing);
  ExpertDims d;
  d.tokens = dims.norm_rows;
  d.local = e.count / options.expert_parallel;
  d.sent = routed.sent;
  d.arrived = routed.received;
  d.rows = shard(routed.received * options.expert_tensor_parallel, d.local);
  d.ffn = shard(e.ffn, options.expert_tensor_parallel);
  d.up_width = gate * d.ffn;
  d.shared_ffn = shard(e.shared_ffn, dims.t);
  d.shared_up_width = gate * d.shared_ffn;
  d.dispatch_bytes = plan::element_bytes(options.dispatch_dtype.value_or(options.dtype));
  return d;
}

double causal_pairs(std::int64_t sequence, std::optional<std::int64_t> window) {
  const double s = static_cast<double>(sequence);
  const double w = window ? std::min(s, static_cast<double>(*window)) : s;
  return s * w - w * w / 2;
}

std::int64_t padded_vocab(const ModelShape& shape, const BlockOptions& options) {
  const std::int64_t multiple =
      std::max<std::int64_t>(options.vocab_padding, 1) * options.tensor_parallel;
  return (shape.vocab + multiple - 1) / multiple * multiple;
}

Bytes boundary_activation(const ModelShape& shape, const BlockOptions& options) {
  const LocalDims d = local_dims(shape, options);
  return Bytes{d.norm_rows * d.hidden * d.bytes};
}

}  // namespace stepcast::workload
