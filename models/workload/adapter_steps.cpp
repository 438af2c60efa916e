// A linear layer whose weight is frozen, with or without an adapter; see adapters.hpp.
#include "models/workload/steps.hpp"

namespace stepcast::workload {

using plan::CollectiveKind;
using plan::OpClass;
using plan::Pass;

namespace {

std::int64_t rows_of(const Linear& l, const LocalDims& d) { return l.rows > 0 ? l.rows : d.rows; }
std::int64_t cut(std::int64_t width, std::int64_t t) { return (width + t - 1) / t; }

// What a rank computes of X A, and of B's columns.
std::int64_t rank_part(const Linear& l, const LocalDims& d, std::int64_t rank) {
  return l.split == Split::kColumns ? cut(rank, d.t) : rank;
}
std::int64_t output_part(const Linear& l, const LocalDims& d) { return l.split == Split::kRows ? cut(l.n, d.t) : l.n; }
// Rows of the output that the residual, or the next layer, takes.
std::int64_t output_rows(const Linear& l, const LocalDims& d) {
  return l.split == Split::kRows && d.sequence_parallel ? d.norm_rows : l.groups * rows_of(l, d);
}

}  // namespace

// In the dtype of activations where linear layers run in FP8.
void StepList::adapter_gemm(const Linear& l, const char* suffix, Pass pass, plan::GemmShape shape) {
  gemm(l.name + suffix, pass, d_.dtype, shape, shape.batch * (shape.m * shape.k + shape.k * shape.n) * d_.bytes,
       shape.batch * shape.m * shape.n * d_.bytes);
  std::get<Operator>(steps_.back()).kernel.launches = kernels_of(l);
  std::get<Operator>(steps_.back()).routed = l.routed;
}

void StepList::adapter(const Linear& l) {
  const std::int64_t rows = rows_of(l, d_);
  const std::int64_t m = l.groups * rows;
  adapter_gemm(l, ".lora_a", Pass::kForward, {l.groups, rows, rank_part(l, d_, adapters_->rank), l.k});
  const std::int64_t narrow = m * adapters_->rank * d_.bytes;
  if (l.split == Split::kColumns) collective(l.name + ".lora_a.gather", CollectiveKind::kAllGather, narrow, d_.dtype);
  if (l.split == Split::kRows) collective(l.name + ".lora_a.all_reduce", CollectiveKind::kAllReduce, narrow, d_.dtype);
  adapter_gemm(l, ".lora_b", Pass::kForward, {l.groups, rows, output_part(l, d_), adapters_->rank});
  if (l.split == Split::kRows) collective(l.name + ".lora_b.gather", CollectiveKind::kAllGather, m * l.n * d_.bytes, d_.dtype);
  const std::int64_t out = output_rows(l, d_) * l.n;
  add(l.name + ".lora.scale", {OpClass::kElementwise, Pass::kForward, static_cast<double>(out), out * d_.bytes, out * d_.bytes, 1});
  sum(l.name + ".lora.sum", out, Pass::kForward);
}

// From dY to dB and s dY B'.
void StepList::adapter_gradient(const Linear& l) {
  const std::int64_t rows = rows_of(l, d_);
  const std::int64_t m = l.groups * rows;
  const std::int64_t out = output_rows(l, d_) * l.n;
  add(l.name + ".lora.scale.grad", {OpClass::kElementwise, Pass::kBackward, static_cast<double>(out), out * d_.bytes, out * d_.bytes, 1});
  if (l.split == Split::kRows && d_.sequence_parallel)
    collective(l.name + ".lora.grad.gather", CollectiveKind::kAllGather, m * l.n * d_.bytes, d_.dtype);
  const std::int64_t part = output_part(l, d_);
  adapter_weight_gradient(l, ".lora_b.wgrad", part, adapters_->rank);
  adapter_gemm(l, ".lora_b.dgrad", Pass::kInputGrad, {l.groups, rows, adapters_->rank, part});
  if (l.split != Split::kWhole)
    collective(l.name + ".lora_b.dgrad.all_reduce", CollectiveKind::kAllReduce, m * adapters_->rank * d_.bytes, d_.dtype);
}

// A gradient of n by k over the layer's rows, added to what earlier micro-batches left.
void StepList::adapter_weight_gradient(const Linear& l, const char* suffix, std::int64_t n, std::int64_t k) {
  const std::int64_t rows = rows_of(l, d_);
  const std::int64_t inputs = l.groups * rows * (n + k) * d_.bytes;
  const std::int64_t weights = l.groups * n * k;
  const std::int64_t added = fused_accumulation_ ? weights * d_.gradient_bytes : 0;
  gemm(l.name + suffix, Pass::kWeightGrad, d_.dtype, {l.groups, n, k, rows}, inputs + added,
       fused_accumulation_ ? added : weights * d_.bytes);
  std::get<Operator>(steps_.back()).routed = l.routed;
  if (fused_accumulation_) return;
  add(l.name + suffix + ".accumulate", {OpClass::kElementwise, Pass::kWeightGrad, static_cast<double>(weights),
                                        weights * (d_.bytes + d_.gradient_bytes), weights * d_.gradient_bytes, 1});
}

void StepList::frozen_backward(const Linear& l, InputGradient input_gradient, bool sharded_input) {
  const std::int64_t rows = rows_of(l, d_);
  const std::int64_t m = l.groups * rows;
  const std::int64_t e = l.dtype ? plan::element_bytes(*l.dtype) : d_.gemm_bytes;
  const bool reduced = input_gradient == InputGradient::kReduced && d_.t > 1;
  const bool has_adapter = adapted(l);
  const std::int64_t part = rank_part(l, d_, adapters_->rank);
  if (has_adapter) adapter_gradient(l);
  // The gathered input is needed by dA only.
  const bool packed = adapters_->base && l.projection != Projection::kNone;
  if (has_adapter && sharded_input)
    collective(l.name + ".regather", CollectiveKind::kAllGather, m * l.k * d_.bytes, d_.dtype, 3 + (packed ? 1 : 0) + (reduced ? 1 : 0), true);
  dequantise(l, Pass::kBackward);
  gemm_of(l, l.name + ".dgrad", Pass::kInputGrad, {l.groups, rows, l.k, l.n}, (m * l.n + l.groups * l.n * l.k) * e, m * l.k * d_.bytes);
  if (has_adapter) {
    adapter_gemm(l, ".lora_a.dgrad", Pass::kInputGrad, {l.groups, rows, l.k, part});
    sum(l.name + ".lora.sum.grad", m * l.k, Pass::kBackward);
  }
  if (reduced) reduce(l.name + ".dgrad", l.k, has_adapter ? (fused_accumulation_ ? 1 : 2) : 0);
  if (has_adapter) adapter_weight_gradient(l, ".lora_a.wgrad", part, l.k);
}

// 2 FLOPs a parameter: the code's value times its block's scale. Twice quantised scales come first: brought back,
// and their offset added.
void StepList::dequantise(const Linear& l, Pass pass) {
  if (!adapters_ || !adapters_->base || l.projection == Projection::kNone) return;
  constexpr std::int64_t kFp32Bytes = 4;
  const std::int64_t weights = l.groups * l.n * l.k;
  const std::int64_t scales = cut(weights, kBlockOf4Bit);
  const bool twice = adapters_->base->double_quantised;
  Work work{.op = OpClass::kElementwise, .pass = pass, .flops = 2 * static_cast<double>(weights)};
  work.read = packed_bytes(weights) + kFp32Bytes * scales + (twice ? scale_bytes(*adapters_->base, weights) + kFp32Bytes * scales : 0);
  work.written = weights * d_.bytes + (twice ? 2 * kFp32Bytes * scales : 0);
  work.launches = static_cast<int>(l.groups) * (twice ? 3 : 1);
  add(l.name + (pass == Pass::kForward ? ".dequantise" : ".grad.dequantise"), work);
}

}  // namespace stepcast::workload
