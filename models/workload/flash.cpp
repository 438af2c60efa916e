// Fused attention, on one rank or over context-parallel ranks.
//
// Symbols  s sequence, c context-parallel ranks, L = s/c the part of one rank, P(s) pairs of causal attention
// Model    alone       P(s) pairs of a head
//          all-gather  keys and values of s are gathered; backward: gathered again, their gradients
//                      reduce-scattered. Each rank holds an early and a late half part: P(s)/c pairs    (1)
//          ring        c steps; the keys and values of the next step travel beside the attention of this
//                      one. L^2/2 pairs a step, (1) in all; plain: the busiest rank has L^2 in all steps
//                      but its own. Backward: gradients of keys and values travel with them, c-1 times
//          Ulysses     all-to-all of q, k, v into s tokens of 1/c of the heads, and of the output back
// Source   Transformer Engine context_parallel.py (order of exchanges, merging of partial outputs)
// Ignores  the log-sum-exp of partial outputs on their way (4 B a row and head), windows in a ring
#include <cmath>

#include "models/workload/layer_parts.hpp"

namespace stepcast::workload {

using plan::CollectiveKind;
using plan::OpClass;
using plan::Pass;

namespace {

constexpr std::int64_t kFp32Bytes = 4;

// One kernel: `queries` of each sequence against `keys`.
struct Part {
  std::int64_t batch = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t queries = 0;
  std::int64_t keys = 0;
  bool causal = true;
  std::optional<std::int64_t> window = {};
  double pairs = 0;  // of one head of one of `batch`
};

void attend(const LayerContext& c, StepList& steps, const std::string& name, const Part& part, bool backward) {
  const LocalDims& d = c.d;
  plan::Kernel kernel;
  kernel.op = OpClass::kAttention;
  kernel.pass = backward ? Pass::kBackward : Pass::kForward;
  kernel.dtype = d.dtype;
  kernel.attention = plan::AttentionShape{.batch = part.batch,
                                          .query_heads = part.heads,
                                          .kv_heads = part.kv_heads,
                                          .query_length = part.queries,
                                          .kv_length = part.keys,
                                          .head_dim = d.head_dim,
                                          .value_dim = d.value_dim,
                                          .causal = part.causal,
                                          .window = part.window};
  // Two products a pair; the backward pass runs five: scores again, dQ, dK of the keys' width, dV and dP of
  // the values'.
  const double key_products = backward ? 3 : 1;
  const double value_products = backward ? 2 : 1;
  const double width = key_products * static_cast<double>(d.head_dim) + value_products * static_cast<double>(d.value_dim);
  kernel.flops = Flops::from_si(2 * width * static_cast<double>(part.batch * part.heads) * part.pairs);
  const std::int64_t query_rows = part.batch * part.queries * part.heads;
  const std::int64_t statistics = query_rows * kFp32Bytes;
  const std::int64_t keys = part.batch * part.keys * part.kv_heads * (d.head_dim + d.value_dim) * d.bytes;
  const std::int64_t qkv = query_rows * d.head_dim * d.bytes + keys;
  const std::int64_t output = query_rows * d.value_dim * d.bytes;
  kernel.read = Bytes{backward ? qkv + 2 * output + statistics : qkv};
  kernel.written = Bytes{backward ? qkv : output + statistics};
  // Backward: row sums of dO*O, the main kernel, conversion of the fp32 dQ.
  kernel.launches = backward ? 3 : 1;
  steps.add_kernel(backward ? name + ".grad" : name, kernel);
}

// This rank's heads and sequences as one device would run them.
void alone(const LayerContext& c, StepList& steps, std::int64_t heads, std::int64_t kv_heads, bool backward) {
  const std::int64_t s = c.options.sequence;
  Part part{c.d.batch, heads, kv_heads, s, s, true, c.window, causal_pairs(s, c.window)};
  if (c.shape.bidirectional) {
    part.causal = false;
    part.pairs = static_cast<double>(s) * static_cast<double>(s);
  }
  if (c.window && c.shape.window_is_chunk && s % *c.window == 0) {  // short sequences side by side
    part.batch *= s / *c.window;
    part.queries = part.keys = *c.window;
    part.window.reset();
    part.pairs = causal_pairs(*c.window, std::nullopt);
  }
  attend(c, steps, "attention.core", part, backward);
}

std::int64_t key_value_bytes(const LayerContext& c) { return c.d.rows * (c.d.kv_width + c.d.v_width) * c.d.bytes; }

void pass_on(const LayerContext& c, StepList& steps, const char* name, std::int64_t bytes) {
  steps.exchange(name, Over::kContext, CollectiveKind::kSendReceive, bytes, c.d.dtype, 1);
}

// One step of the ring: a rank's own part, or keys and values from elsewhere.
void ring_step(const LayerContext& c, StepList& steps, bool own, bool backward) {
  const LocalDims& d = c.d;
  const double pairs = causal_pairs(d.sequence, std::nullopt);
  Part part{d.batch, d.q_heads, d.kv_heads, d.sequence, d.sequence, own, std::nullopt, pairs};
  if (!own && c.options.context_style == ContextStyle::kPlainRing) part.pairs *= 2;
  if (!own && c.options.context_style == ContextStyle::kRing) part.keys = d.sequence / 2;
  attend(c, steps, "attention.core", part, backward);
}

void merge(const LayerContext& c, StepList& steps, const char* name, std::int64_t width, bool backward) {
  const std::int64_t n = c.d.rows * width;
  steps.add(name, {OpClass::kElementwise, backward ? Pass::kBackward : Pass::kForward, 3 * static_cast<double>(n),
                   2 * n * c.d.bytes, n * c.d.bytes, 1});
}

void ring_forward(const LayerContext& c, StepList& steps) {
  for (std::int64_t i = 0; i < c.d.context; ++i) {
    if (i + 1 < c.d.context) pass_on(c, steps, "attention.ring", key_value_bytes(c));
    ring_step(c, steps, i == 0, false);
    if (i > 0) merge(c, steps, "attention.merge", c.d.out_width, false);
  }
}

// Against the order of the forward pass: the own part comes last. First keys and values travel alone, last
// their gradients alone.
void ring_backward(const LayerContext& c, StepList& steps) {
  const std::int64_t last = c.d.context - 1;
  for (std::int64_t i = 0; i <= last; ++i) {
    pass_on(c, steps, "attention.ring.grad", (i == 0 || i == last ? 1 : 2) * key_value_bytes(c));
    ring_step(c, steps, i == last, true);
    if (i == 0) continue;
    merge(c, steps, "attention.merge.grad", c.d.q_width + c.d.kv_width + c.d.v_width, true);
  }
}

// Queries of two half parts see s/2 keys on average, or the window.
void gathered(const LayerContext& c, StepList& steps, bool backward) {
  const LocalDims& d = c.d;
  const double pairs = causal_pairs(c.options.sequence, c.window) / static_cast<double>(d.context);
  const auto keys = static_cast<std::int64_t>(std::llround(pairs / static_cast<double>(d.sequence)));
  attend(c, steps, "attention.core", {d.batch, d.q_heads, d.kv_heads, d.sequence, keys, false, std::nullopt, pairs}, backward);
}

void gather_forward(const LayerContext& c, StepList& steps) {
  steps.exchange("attention.kv.gather", Over::kContext, CollectiveKind::kAllGather, c.d.context * key_value_bytes(c), c.d.dtype);
  gathered(c, steps, false);
}

void gather_backward(const LayerContext& c, StepList& steps) {
  const std::int64_t bytes = c.d.context * key_value_bytes(c);
  steps.exchange("attention.kv.regather", Over::kContext, CollectiveKind::kAllGather, bytes, c.d.dtype);
  gathered(c, steps, true);
  steps.exchange("attention.kv.grad.scatter", Over::kContext, CollectiveKind::kReduceScatter, bytes, c.d.dtype);
}

void swap(const LayerContext& c, StepList& steps, const char* name, std::int64_t width) {
  steps.exchange(name, Over::kContext, CollectiveKind::kAllToAll, c.d.rows * width * c.d.bytes, c.d.dtype);
}

void swapped(const LayerContext& c, StepList& steps, bool backward) {
  const LocalDims& d = c.d;
  swap(c, steps, backward ? "attention.output.grad.all_to_all" : "attention.qkv.all_to_all",
       backward ? d.out_width : d.qkv_width);
  alone(c, steps, d.q_heads / d.context, d.kv_heads / d.context, backward);
  swap(c, steps, backward ? "attention.qkv.grad.all_to_all" : "attention.output.all_to_all",
       backward ? d.qkv_width : d.out_width);
}

}  // namespace

void flash_forward(const LayerContext& c, StepList& steps) {
  if (c.d.context == 1) return alone(c, steps, c.d.q_heads, c.d.kv_heads, false);
  switch (c.options.context_style) {
    case ContextStyle::kRing:
    case ContextStyle::kPlainRing: return ring_forward(c, steps);
    case ContextStyle::kAllGather: return gather_forward(c, steps);
    case ContextStyle::kUlysses: return swapped(c, steps, false);
  }
}

void flash_backward(const LayerContext& c, StepList& steps) {
  if (c.d.context == 1) return alone(c, steps, c.d.q_heads, c.d.kv_heads, true);
  switch (c.options.context_style) {
    case ContextStyle::kRing:
    case ContextStyle::kPlainRing: return ring_backward(c, steps);
    case ContextStyle::kAllGather: return gather_backward(c, steps);
    case ContextStyle::kUlysses: return swapped(c, steps, true);
  }
}

}  // namespace stepcast::workload
