// models/parallel/data_parallel.hpp — what data parallelism adds to a stage's program, as hooks that
// the stage's writer calls around each block and each step of the backward pass.
//
// Replicated (ZeRO 0-2): gradients in buckets, reduced beside the backward pass on stream dp.
//   ZeRO-0   all-reduce of each bucket in the last pass that gives its chunk's weight gradients (the
//            last micro-batch's B, or W where they are apart); without overlap, one all-reduce a
//            chunk after all of them
//   ZeRO-1   reduce-scatter instead; the optimizer updates one shard; all-gather of the updated
//            parameters by bucket: after the optimizer, or (overlap_param_gather) at the start of the
//            step beside the first forward pass, in forward order, as a step in steady state sees the
//            update of the step before it (Megatron-Core's overlap_param_gather)
//   ZeRO-2   as ZeRO-1, but only a shard of the gradients persists: every micro-batch's buckets are
//            reduce-scattered; at most two full buckets live at a time
// Sharded (ZeRO-3, FSDP; and ZeRO-2: both gradients in one pass): parameters live as shards. A unit (a layer; embedding and head together are
//   the root unit) is all-gathered on dp.gather before its forward and again before its backward pass,
//   `prefetch` units ahead, at most prefetch + 1 resharding units gathered at a time; its gradient is
//   reduce-scattered on dp.reduce when its backward is done. The root, and every unit when
//   reshard_after_forward is off, stays gathered while a micro-batch of it is in flight (PyTorch FSDP).
//   In a pipeline, a micro-batch's gradients are added to whole ones, which the last backward pass scatters, and what stays
//   gathered does so to the end of the step (PyTorch torch/distributed/pipelining/stage.py: set_requires_gradient_sync and
//   set_reshard_after_backward are off but for the last backward pass).
// With a shard group smaller than dp, a scatter is followed by an all-reduce of the shard over the
// replicas (Megatron-Core's optimizer instances, FSDP's hybrid shard), in every micro-batch that
// scatters.
// Frozen weights (LoRA) are gathered with their unit as they are stored and never reduced.
// Routed experts' parameters have replicas of their own: their buckets, gathers and scatters run over those,
// on the same streams.
// sync_every: ZeRO-0 and 1 reduce every micro-batch's gradients (DDP without no_sync); without it ZeRO-2 is
// ZeRO-1, and ZeRO-3 keeps whole gradients, reduce-scattered in the last micro-batch (FSDP no_sync, and what
// PyTorch's pipelines do with FSDP).
// reduce_dtype: gradients are copied into it bucket by bucket, and back where they are all-reduced.
// Each stream has a communicator of its own: gathers and reductions run side by side.
// Ignores  copies into and out of buckets (they are views), casts of parameters to fp8 before a gather, the addition of a scattered shard to what
//          earlier micro-batches left, padding but to a multiple of the shard group
#pragma once

#include <memory>
#include <span>

#include "models/parallel/emitter.hpp"
#include "models/parallel/groups.hpp"
#include "models/parallel/action.hpp"
#include "models/parallel/stage_model.hpp"
#include "models/parallel/strategy.hpp"

namespace stepcast::parallel {

// Of both kinds of parameters, where they are handled as a whole.
struct Elements {
  std::int64_t dense = 0;
  std::int64_t routed = 0;
};

class DataParallel {
 public:
  DataParallel() = default;
  DataParallel(const DataParallel&) = delete;
  DataParallel& operator=(const DataParallel&) = delete;
  virtual ~DataParallel() = default;

  virtual void begin_step() {}
  virtual void begin_action(std::size_t /*action*/) {}  // index into the stage's actions
  virtual void before_forward(std::size_t /*block*/) {}
  virtual void after_forward(std::size_t /*block*/) {}
  virtual void before_backward(std::size_t /*block*/) {}
  virtual void before_backward_step(std::size_t /*block*/, std::size_t /*step*/) {}
  virtual void after_backward_step(std::size_t /*block*/, std::size_t /*step*/) {}
  virtual void after_backward(std::size_t /*block*/) {}
  virtual void finish_gradients() {}  // compute may use all gradients after it
  virtual void end_step() {}          // after the optimizer
};

// All of these outlive the object; `actions` are the stage's.
struct DataParallelContext {
  const StageModel& model;
  const Strategy& strategy;
  const Groups& groups;
  std::span<const Action> actions;
  Emitter& emitter;
};

std::unique_ptr<DataParallel> make_data_parallel(const DataParallelContext& context);

// Issues what sums a gradient over the data ranks on `stream`: all-reduce, or reduce-scatter and an
// all-reduce over replicas.
void reduce_gradient(const DataParallelContext& context, plan::StreamId stream, std::string_view label,
                     std::int64_t elements, Kind kind = Kind::kDense);
// Before a gradient is summed in another format than it is kept in: a copy in that format. Nothing otherwise.
void cast_for_reduction(const DataParallelContext& context, std::int64_t elements);
// What gathers of `elements` save where weights of fp8 products travel in one byte.
constexpr Bytes saved_by_fp8(const Strategy& s, std::int64_t in_fp8) {
  return s.fp8_gather ? Bytes{in_fp8 * (plan::element_bytes(s.dtype) - 1)} : Bytes{0};
}
// Nothing to sum where each of these parameters has one holder.
inline bool is_replicated(const DataParallelContext& context, Kind kind) {
  const ReplicaGroups& groups = context.groups.of(kind);
  return groups.all || groups.shard;
}

// The next multiple of the shard size: what is cut into equal shards.
constexpr std::int64_t padded_to_shards(const Strategy& s, std::int64_t elements, Kind kind = Kind::kDense) {
  return ceil_div(elements, shard_size(s, kind)) * shard_size(s, kind);
}
constexpr Bytes gradient_bytes(const Strategy& s, std::int64_t elements) {
  return Bytes{elements * plan::element_bytes(s.gradient_dtype)};
}
// As they travel between replicas.
constexpr Bytes reduced_bytes(const Strategy& s, std::int64_t elements) {
  return Bytes{elements * plan::element_bytes(reduce_dtype(s))};
}
constexpr Bytes parameter_bytes(const Strategy& s, std::int64_t elements) {
  return Bytes{elements * plan::element_bytes(s.dtype)};
}

}  // namespace stepcast::parallel
