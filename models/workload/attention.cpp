#include "models/workload/layer_parts.hpp"

namespace stepcast::workload {

using plan::OpClass;
using plan::Pass;

namespace {

constexpr std::int64_t kFp32Bytes = 4;
// FLOPs of a masked, scaled softmax per score: scale, mask, max, subtract, exp, sum, divide.
constexpr double kSoftmaxFlops = 7;

// Megatron's kernel works on four score matrices at a time; other numbers of them take one operator after the other
// (fused_softmax.py, is_kernel_available: attn_batches % batch_per_block).
bool has_fused_softmax(const LocalDims& d) { return d.batch * d.q_heads % 4 == 0; }

void batched(const LayerContext& c, StepList& steps, const char* name, Pass pass, std::int64_t m,
             std::int64_t n, std::int64_t k) {
  const LocalDims& d = c.d;
  const std::int64_t batch = d.batch * d.q_heads;
  steps.gemm(name, pass, d.dtype, {batch, m, n, k}, batch * (m * k + k * n) * d.bytes,
             batch * m * n * d.bytes);
}

void softmax(const LayerContext& c, StepList& steps, bool backward) {
  const LocalDims& d = c.d;
  const std::int64_t e = d.bytes;
  Work work{.op = OpClass::kSoftmax, .pass = backward ? Pass::kBackward : Pass::kForward};
  work.flops = kSoftmaxFlops * static_cast<double>(d.scores);
  std::int64_t read = backward ? 2 * e : e;
  std::int64_t written = e;
  if (!steps.fused() || !has_fused_softmax(d)) {
    // scale, mask, cast up, softmax, cast down; and the same backwards.
    const std::int64_t cast = e == kFp32Bytes ? 0 : e + kFp32Bytes;
    read = 2 * e + cast + (backward ? 2 : 1) * kFp32Bytes;
    written = 2 * e + cast + kFp32Bytes;
    work.launches = e == kFp32Bytes ? 3 : 5;
  }
  work.read = d.scores * read;
  work.written = d.scores * written;
  steps.add(backward ? "attention.softmax.grad" : "attention.softmax", work);
}

void dropout(const LayerContext& c, StepList& steps, bool backward) {
  if (!c.dropout()) return;
  const std::int64_t e = c.d.bytes;
  const std::int64_t n = c.d.scores;  // the mask is one byte a score
  if (backward)
    steps.add("attention.dropout.grad", {OpClass::kElementwise, Pass::kBackward,
                                         static_cast<double>(n), n * (e + 1), n * e, 1});
  else
    steps.add("attention.dropout", {OpClass::kElementwise, Pass::kForward, static_cast<double>(n),
                                    n * e, n * (e + 1), 1});
}

// Heads side by side again, for the projection; backwards the batched GEMMs read strided heads.
void join_heads(const LayerContext& c, StepList& steps) {
  const std::int64_t bytes = c.d.rows * c.d.out_width * c.d.bytes;
  steps.add("attention.join_heads", {OpClass::kElementwise, Pass::kForward, 0, bytes, bytes, 1});
}

// The gradients of Q, K and V become one tensor, the output gradient of their projection.
void join_qkv_gradient(const LayerContext& c, StepList& steps) {
  const std::int64_t bytes = c.d.rows * c.d.qkv_width * c.d.bytes;
  steps.add("attention.join_qkv.grad", {OpClass::kElementwise, Pass::kBackward, 0, bytes, bytes, 1});
}

void expand_kv(const LayerContext& c, StepList& steps, bool backward) {
  if (!c.expands_kv()) return;
  const std::int64_t few = 2 * c.d.rows * c.d.kv_width * c.d.bytes;
  const std::int64_t many = 2 * c.d.rows * c.d.q_width * c.d.bytes;
  steps.add(backward ? "attention.expand_kv.grad" : "attention.expand_kv",
            {OpClass::kElementwise, backward ? Pass::kBackward : Pass::kForward,
             backward ? static_cast<double>(2 * c.d.rows * c.d.q_width) : 0.0,
             backward ? many : few, backward ? few : many, 2});
}

void rotary(const LayerContext& c, StepList& steps, bool backward) {
  if (c.shape.position != Position::kRotary) return;
  const LocalDims& d = c.d;
  // Latent attention rotates a part of each query head and one key part that all heads share.
  const std::int64_t n = c.shape.latent ? d.rows * (d.q_heads + 1) * c.shape.latent->rope_dim
                                        : d.rows * (d.q_width + d.kv_width);
  Work work{.op = OpClass::kElementwise, .pass = backward ? Pass::kBackward : Pass::kForward};
  work.flops = 3 * static_cast<double>(n);  // x cos + rotated(x) sin
  // Written out, for queries and keys each: negate, concatenate, times cos, times sin, sum.
  work.read = n * d.bytes * (steps.fused() ? 1 : 11) / (steps.fused() ? 1 : 2);
  work.written = n * d.bytes * (steps.fused() ? 1 : 9) / (steps.fused() ? 1 : 2);
  work.launches = steps.fused() ? 1 : 10;
  steps.add(backward ? "attention.rotary.grad" : "attention.rotary", work);
}

}  // namespace

void attention_core(const LayerContext& c, StepList& steps) {
  if (c.flash()) return flash_forward(c, steps);
  const std::int64_t s = c.d.sequence;
  const std::int64_t head = c.d.head_dim;
  const std::int64_t value = c.d.value_dim;
  batched(c, steps, "attention.scores", Pass::kForward, s, s, head);
  softmax(c, steps, false);
  dropout(c, steps, false);
  batched(c, steps, "attention.context", Pass::kForward, s, value, s);
  join_heads(c, steps);
}

void attention_core_backward(const LayerContext& c, StepList& steps) {
  if (c.flash()) return flash_backward(c, steps);
  const std::int64_t s = c.d.sequence;
  const std::int64_t head = c.d.head_dim;
  const std::int64_t value = c.d.value_dim;
  batched(c, steps, "attention.context.dscores", Pass::kInputGrad, s, s, value);
  batched(c, steps, "attention.context.dvalue", Pass::kInputGrad, s, value, s);
  dropout(c, steps, true);
  softmax(c, steps, true);
  batched(c, steps, "attention.scores.dquery", Pass::kInputGrad, s, head, s);
  batched(c, steps, "attention.scores.dkey", Pass::kInputGrad, s, head, s);
}

void prepare_heads(const LayerContext& c, StepList& steps) {
  const LocalDims& d = c.d;
  const std::int64_t width = d.q_width + d.kv_width;
  if (c.shape.qk_norm) steps.norm("attention.qk_norm", c.shape.norm, d.rows, width, false, 2);
  rotary(c, steps, false);
  expand_kv(c, steps, false);
}

void prepare_heads_backward(const LayerContext& c, StepList& steps) {
  const LocalDims& d = c.d;
  const std::int64_t width = d.q_width + d.kv_width;
  expand_kv(c, steps, true);
  rotary(c, steps, true);
  if (c.shape.qk_norm) steps.norm("attention.qk_norm.grad", c.shape.norm, d.rows, width, true, 2);
  if (!c.flash()) join_qkv_gradient(c, steps);
}

}  // namespace stepcast::workload
