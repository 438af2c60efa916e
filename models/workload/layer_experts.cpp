// A mixture of experts in place of the MLP, for one rank.
//
// Order    router, choice of experts, tokens sorted by expert (permute), all-to-all to the experts' ranks
//          (dispatch), gathered over expert tensor-parallel ranks, sorted by local expert, grouped GEMMs,
//          the way back (combine), each token's top_k results summed (unpermute). Shared experts are an MLP
//          beside: before the dispatch, or, overlapped, their first half beside it and their second half
//          beside the combine. Choice probabilities scale the activation
// Volume   dispatch and combine carry sent rows x hidden each, of which (p-1)/p leave the rank; the same
//          backwards, where the gradient of the combine goes the dispatch's way
// Source   Megatron-Core MoELayer, MoEAlltoAllTokenDispatcher (core_r0.12), router.py
// Ignores  counts and probabilities that travel with the rows, the auxiliary loss, jitter; scales of fp8 rows
#include <algorithm>
#include <cmath>

#include "models/workload/layer_parts.hpp"

namespace stepcast::workload {

using plan::CollectiveKind;
using plan::Dtype;
using plan::OpClass;
using plan::Pass;

namespace {

constexpr std::int64_t kFp32Bytes = 4;

const ExpertShape& shape_of(const LayerContext& c) { return *c.shape.experts; }

// In the dtype of activations where linear layers run in FP8.
Linear router(const LayerContext& c) {
  return {"router", shape_of(c).count, c.d.hidden, false, c.experts->tokens, 1, false, c.d.dtype};
}
Linear up(const LayerContext& c) {
  return adaptable({"experts.up", c.experts->up_width, c.d.hidden, false, c.experts->rows, c.experts->local, true},
                   Projection::kUp, Split::kWhole);
}
Linear down(const LayerContext& c) {
  return adaptable({"experts.down", c.d.hidden, c.experts->ffn, false, c.experts->rows, c.experts->local, true},
                   Projection::kDown, Split::kWhole);
}
Linear shared_up(const LayerContext& c) {
  return adaptable({"shared.up", c.experts->shared_up_width, c.d.hidden}, Projection::kUp, Split::kColumns);
}
Linear shared_down(const LayerContext& c) {
  return adaptable({"shared.down", c.d.hidden, c.experts->shared_ffn}, Projection::kDown, Split::kRows);
}

int expert_kernels(const LayerContext& c) { return c.options.grouped_experts ? 1 : static_cast<int>(c.experts->local); }

ActivationSize routed_activation(const LayerContext& c) {
  return {"experts", c.experts->all_rows(), c.experts->up_width, c.experts->ffn, shape_of(c).bias, expert_kernels(c)};
}
ActivationSize shared_activation(const LayerContext& c) {
  return {"shared", c.d.rows, c.experts->shared_up_width, c.experts->shared_ffn, false};
}

bool has_shared(const LayerContext& c) { return c.experts->shared_ffn > 0; }
bool overlaps_shared(const LayerContext& c) {
  return has_shared(c) && c.options.overlap_shared_experts && c.options.expert_parallel > 1;
}

// Softmax or sigmoid, top-k, normalised: fused, one kernel for scores and one for the choice.
void choose(const LayerContext& c, StepList& steps, bool backward) {
  const std::int64_t scores = c.experts->tokens * shape_of(c).count;
  const std::int64_t chosen = c.experts->tokens * shape_of(c).top_k;
  const std::int64_t e = kFp32Bytes;
  steps.add(backward ? "router.choose.grad" : "router.choose",
            {OpClass::kSoftmax, backward ? Pass::kBackward : Pass::kForward, 8 * static_cast<double>(scores),
             2 * scores * e + (backward ? chosen * e : 0), scores * e + (backward ? 0 : 3 * chosen * e),
             steps.fused() ? 2 : (backward ? 6 : 8)});
}

// Copies rows between two orders; `from` and `to` count rows.
void copy_rows(const LayerContext& c, StepList& steps, const char* name, std::int64_t from, std::int64_t to,
               bool backward) {
  const std::int64_t width = c.d.hidden * c.d.bytes;
  steps.add(name, {OpClass::kElementwise, backward ? Pass::kBackward : Pass::kForward,
                   from == to ? 0.0 : static_cast<double>(std::max(from, to) * c.d.hidden), from * width, to * width, 1});
}

// Rows by source rank become rows by expert, or the other way.
void sort_rows(const LayerContext& c, StepList& steps, const char* name, bool backward) {
  if (c.options.expert_parallel == 1 && c.options.expert_tensor_parallel == 1) return;
  if (c.experts->local == 1) return;
  copy_rows(c, steps, name, c.experts->all_rows(), c.experts->all_rows(), backward);
}

// Rows to or from the experts' ranks, `element` bytes each of hidden. In two levels: to the same place on the
// hosts that hold a token's experts, once a host, and on from there; both at the same time, row by row, and both
// by the busiest rank's rows.
void exchange_rows(const LayerContext& c, StepList& steps, const std::string& name, std::int64_t element, Dtype dtype,
                   Parts parts, int beside) {
  const ExpertDims& e = *c.experts;
  if (c.options.expert_parallel == 1) return;
  if (!c.options.experts_within) {
    const bool skewed = c.options.routing.skew > 0.0 && !c.options.routing.capacity_factor;
    steps.exchange(name + ".all_to_all", Over::kExpert, CollectiveKind::kAllToAll, e.sent * c.d.hidden * element, dtype,
                   beside, skewed ? parts : Parts::kEqual);
    return;
  }
  const std::int64_t bytes = std::max(e.sent, e.arrived) * c.d.hidden * element;
  const std::int64_t local = *c.options.experts_within;
  const std::int64_t hosts = c.options.expert_parallel / local;
  if (hosts > 1) {
    const double copies = hosts_of_a_token(hosts, shape_of(c).node_limit, shape_of(c).top_k) / static_cast<double>(shape_of(c).top_k);
    steps.exchange(name + ".across", Over::kExpertAcross, CollectiveKind::kAllToAll,
                   std::llround(copies * static_cast<double>(bytes)), dtype, beside + (local > 1 ? 1 : 0));
  }
  if (local > 1) steps.exchange(name + ".within", Over::kExpertWithin, CollectiveKind::kAllToAll, bytes, dtype, beside);
}

// Towards the experts.
void dispatch(const LayerContext& c, StepList& steps, const std::string& name, int beside) {
  exchange_rows(c, steps, name, c.experts->dispatch_bytes, c.options.dispatch_dtype.value_or(c.d.dtype), Parts::kToExperts, beside);
}
void gather_rows(const LayerContext& c, StepList& steps, const std::string& name) {
  const ExpertDims& e = *c.experts;
  if (c.options.expert_tensor_parallel > 1)
    steps.exchange(name + ".gather", Over::kExpertTensor, CollectiveKind::kAllGather,
                   c.options.expert_tensor_parallel * e.arrived * c.d.hidden * e.dispatch_bytes,
                   c.options.dispatch_dtype.value_or(c.d.dtype));
}
// Back from the experts.
void scatter_rows(const LayerContext& c, StepList& steps, const std::string& name) {
  if (c.options.expert_tensor_parallel > 1)
    steps.exchange(name + ".scatter", Over::kExpertTensor, CollectiveKind::kReduceScatter,
                   c.options.expert_tensor_parallel * c.experts->arrived * c.d.hidden * c.d.bytes, c.d.dtype);
}
void combine(const LayerContext& c, StepList& steps, const std::string& name, int beside) {
  exchange_rows(c, steps, name, c.d.bytes, c.d.dtype, Parts::kFromExperts, beside);
}

void shared_first(const LayerContext& c, StepList& steps) {
  steps.gather("shared");
  steps.linear(shared_up(c));
  activation(c, steps, shared_activation(c));
}
void shared_second(const LayerContext& c, StepList& steps) {
  steps.linear(shared_down(c));
  steps.reduce("shared");
}
void shared_second_backward(const LayerContext& c, StepList& steps) {
  steps.gather("shared.grad");
  steps.linear_backward(shared_down(c), InputGradient::kLocal, false);
}
void shared_first_backward(const LayerContext& c, StepList& steps) {
  activation_backward(c, steps, shared_activation(c));
  steps.linear_backward(shared_up(c), InputGradient::kReduced, c.d.sequence_parallel);
}

// Steps that `write` adds.
template <class Write>
int length(const LayerContext& c, Write write) {
  StepList list{c.d, c.options};
  write(c, list);
  return static_cast<int>(list.size());
}

// Two of n terms at a time.
void add_up(const LayerContext& c, StepList& steps, const char* name, Pass pass) {
  steps.sum(name, c.experts->tokens * c.d.hidden, pass);
}

}  // namespace

std::vector<Linear> expert_linears(const LayerContext& c) {
  std::vector<Linear> linears{up(c), down(c)};
  if (has_shared(c)) linears.insert(linears.end(), {shared_up(c), shared_down(c)});
  return linears;
}

void expert_half(const LayerContext& c, StepList& steps) {
  const ExpertDims& e = *c.experts;
  const bool beside = overlaps_shared(c);
  steps.linear(router(c));
  choose(c, steps, false);
  if (has_shared(c) && !beside) {
    shared_first(c, steps);
    shared_second(c, steps);
  }
  copy_rows(c, steps, "permute", e.tokens, e.sent, false);
  dispatch(c, steps, "dispatch", beside ? length(c, shared_first) : 0);
  if (beside) shared_first(c, steps);
  gather_rows(c, steps, "dispatch");
  sort_rows(c, steps, "experts.sort", false);
  steps.linear(up(c));
  activation(c, steps, routed_activation(c));
  steps.linear(down(c));
  sort_rows(c, steps, "experts.unsort", false);
  scatter_rows(c, steps, "combine");
  combine(c, steps, "combine", beside ? length(c, shared_second) : 0);
  if (beside) shared_second(c, steps);
  copy_rows(c, steps, "unpermute", e.sent, e.tokens, false);
  if (has_shared(c)) add_up(c, steps, "shared.sum", Pass::kForward);
}

void shared_experts_again(const LayerContext& c, StepList& steps) {
  if (!has_shared(c)) return;
  shared_first(c, steps);
  shared_second(c, steps);
}

void activations_again(const LayerContext& c, StepList& steps) {
  if (!c.experts) return activation(c, steps, {"mlp", c.d.rows, c.d.up_width, c.d.ffn, c.shape.mlp_bias});
  activation(c, steps, routed_activation(c));
  if (has_shared(c)) activation(c, steps, shared_activation(c));
}

void expert_half_backward(const LayerContext& c, StepList& steps) {
  const ExpertDims& e = *c.experts;
  const bool beside = overlaps_shared(c);
  copy_rows(c, steps, "unpermute.grad", e.tokens, e.sent, true);
  dispatch(c, steps, "combine.grad", beside ? length(c, shared_second_backward) : 0);
  if (beside) shared_second_backward(c, steps);
  gather_rows(c, steps, "combine.grad");
  sort_rows(c, steps, "experts.unsort.grad", true);
  steps.linear_backward(down(c), InputGradient::kLocal, false);
  activation_backward(c, steps, routed_activation(c));
  steps.linear_backward(up(c), InputGradient::kLocal, false);
  if (shape_of(c).bias) bias_gradient(c, steps, "experts.down.bias_grad", e.all_rows(), c.d.hidden, expert_kernels(c));
  sort_rows(c, steps, "experts.sort.grad", true);
  scatter_rows(c, steps, "dispatch.grad");
  combine(c, steps, "dispatch.grad", beside ? length(c, shared_first_backward) : 0);
  if (beside) shared_first_backward(c, steps);
  copy_rows(c, steps, "permute.grad", e.sent, e.tokens, true);
  if (has_shared(c) && !beside) {
    shared_second_backward(c, steps);
    shared_first_backward(c, steps);
  }
  choose(c, steps, true);
  steps.linear_backward(router(c), InputGradient::kLocal, false);
  add_up(c, steps, "router.sum.grad", Pass::kBackward);
  if (has_shared(c)) add_up(c, steps, "shared.sum.grad", Pass::kBackward);
}

}  // namespace stepcast::workload
