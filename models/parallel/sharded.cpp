#include "models/parallel/sharded.hpp"

#include <algorithm>
#include <set>

#include "models/parallel/optimizer.hpp"
#include "sim/base/check.hpp"

namespace stepcast::parallel {

using plan::CollectiveKind;
using plan::Purpose;
using plan::StreamKind;

namespace {

// Weights of a layer's fp8 products, frozen ones too.
std::int64_t fp8_weights(const workload::Block& block, bool routed) {
  std::int64_t weights = 0;
  for (const workload::Step& step : block.forward) {
    const auto* op = std::get_if<workload::Operator>(&step);
    if (op == nullptr || !op->kernel.gemm || op->kernel.dtype != plan::Dtype::kFp8 || op->routed != routed) continue;
    const plan::GemmShape& gemm = *op->kernel.gemm;
    weights += (routed ? gemm.batch : 1) * gemm.n * gemm.k;
  }
  return weights;
}

void add_dense_matrices(Matrices& matrices, const workload::Block& block) {
  for (const workload::Step& step : block.forward) {
    const auto* op = std::get_if<workload::Operator>(&step);
    if (op == nullptr || !is_weight_product(*op) || op->routed) continue;
    ++matrices.count;
    if (!op->frozen) matrices.elements += op->kernel.gemm->n * op->kernel.gemm->k;
    --matrices.vectors;
  }
  matrices.vectors += block.matrix_count - block.routed_count;
}

plan::StreamId reduce_stream(const DataParallelContext& context) {
  return context.strategy.overlap_grad_reduce
             ? context.emitter.builder.stream(StreamKind::kCommunication, "dp.reduce")
             : context.emitter.compute;
}

}  // namespace

Sharded::Sharded(const DataParallelContext& context)
    : context_{context},
      gather_stream_{context.emitter.builder.stream(StreamKind::kCommunication, "dp.gather")},
      reduce_stream_{reduce_stream(context)},
      scatters_{context, reduce_stream_, "gradient.unit"} {
  std::optional<std::size_t> root;
  for (const StageBlock& block : context.model.blocks) {
    const bool is_layer = block.role == BlockRole::kLayer;
    if (is_layer || !root) {
      units_.push_back({.keeps = !is_layer || !context.strategy.reshard_after_forward});
      if (!is_layer) root = units_.size() - 1;
    }
    const std::size_t unit = is_layer ? units_.size() - 1 : *root;
    units_[unit].elements.dense += is_replicated(context, Kind::kDense) ? block.block->parameters - block.block->routed_parameters : 0;
    units_[unit].elements.routed += is_replicated(context, Kind::kExpert) ? block.block->routed_parameters : 0;
    const bool streams = context.strategy.offload.parameters;
    units_[unit].brought.dense += is_replicated(context, Kind::kDense) || streams ? block.block->parameters - block.block->routed_parameters : 0;
    units_[unit].brought.routed += is_replicated(context, Kind::kExpert) || streams ? block.block->routed_parameters : 0;
    if (is_replicated(context, Kind::kDense)) units_[unit].frozen_dense += block.block->frozen.dense;
    if (is_replicated(context, Kind::kExpert)) units_[unit].frozen_routed += block.block->frozen.routed;
    units_[unit].saved_dense += saved_by_fp8(context.strategy, fp8_weights(*block.block, false));
    units_[unit].saved_routed += saved_by_fp8(context.strategy, fp8_weights(*block.block, true));
    add_dense_matrices(units_[unit].matrices, *block.block);
    ++units_[unit].blocks;
    unit_of_block_.push_back(unit);
  }
  plan_uses();
}

// Which pass gathers its unit, and which one is the last before the unit is let go: follows from the
// schedule alone.
void Sharded::plan_uses() {
  std::vector<std::size_t> last(context_.model.chunks.size(), 0);
  for (std::size_t action = 0; action < context_.actions.size(); ++action)
    for (const Pass& pass : Passes{context_.actions[action]}) last[pass.chunk] = action;
  last_backward_.resize(context_.actions.size(), false);
  for (const std::size_t action : last) last_backward_[action] = true;

  std::vector<bool> held(units_.size(), false);
  std::vector<std::int64_t> in_flight(last.size(), 0);
  for (std::size_t action = 0; action < context_.actions.size(); ++action) {
    for (const Pass& pass : Passes{context_.actions[action]}) {
      const bool forward = pass.kind == ActionKind::kForward;
      const StageChunk& chunk = context_.model.chunks[pass.chunk];
      in_flight[pass.chunk] += forward ? 1 : -1;
      const bool stays = forward || in_flight[pass.chunk] > 0 || (!syncs_every(context_.strategy) && !last_backward_[action]);
      std::vector<std::size_t> left(units_.size());
      for (std::size_t u = 0; u < units_.size(); ++u) left[u] = units_[u].blocks;
      for (std::size_t i = 0; i < chunk.count; ++i) use_block(chunk.first + (forward ? i : chunk.count - 1 - i), stays, left, held);
    }
  }
}

void Sharded::use_block(std::size_t block, bool stays, std::vector<std::size_t>& left, std::vector<bool>& held) {
  const std::size_t unit = unit_of_block_[block];
  Use use{unit, !held[unit], false};
  held[unit] = true;
  if (use.gathers) gathers_.push_back({unit, {}});
  --left[unit];
  if (left[unit] == 0 && !(units_[unit].keeps && stays)) {
    use.releases = true;
    held[unit] = false;
  }
  uses_.push_back(use);
}

void Sharded::begin_action(std::size_t action) {
  if (context_.actions[action].kind == ActionKind::kForward) return;
  for (Unit& unit : units_) unit.gradients_left = unit.blocks;
  reducing_ = syncs_every(context_.strategy) || last_backward_[action];
}

void Sharded::before_forward(std::size_t /*block*/) { begin_use(); }
void Sharded::after_forward(std::size_t /*block*/) { end_use(); }

void Sharded::before_backward(std::size_t block) {
  begin_use();
  Unit& unit = units_[unit_of_block_[block]];
  const bool sharded = unit.elements.dense + unit.elements.routed > 0;
  if (sharded && !unit.gradient) unit.gradient = scatters_.open(unit.elements);
}

void Sharded::after_backward(std::size_t block) {
  end_use();
  Unit& unit = units_[unit_of_block_[block]];
  if (--unit.gradients_left > 0 || !unit.gradient || !reducing_) return;
  scatters_.close(*unit.gradient, unit.elements, unit.matrices);
  unit.gradient.reset();
}

void Sharded::finish_gradients() { scatters_.drain(); }

void Sharded::begin_use() {
  if (uses_[next_use_].gathers) ++needed_;
  issue_gathers();
  if (uses_[next_use_].gathers) {
    SIM_CHECK(issued_ >= needed_, issued_, needed_);
    context_.emitter.builder.wait(context_.emitter.compute, *gathers_[needed_ - 1].arrived);
  }
}

void Sharded::end_use() {
  Emitter& e = context_.emitter;
  const Use& use = uses_[next_use_++];
  if (use.releases) {
    e.release(e.compute, units_[use.unit].parameters);
    units_[use.unit].parameters.reset();
  }
  if (use.gathers || use.releases) last_used_ = e.builder.record(e.compute);
}

// A unit that is still held from an earlier pass cannot be gathered ahead.
void Sharded::issue_gathers() {
  const std::size_t ahead = needed_ + static_cast<std::size_t>(context_.strategy.prefetch);
  while (issued_ < std::min(ahead, gathers_.size()) && !units_[gathers_[issued_].unit].parameters) gather(issued_++);
}

void Sharded::gather(std::size_t index) {
  const Strategy& s = context_.strategy;
  Emitter& e = context_.emitter;
  Gather& gather = gathers_[index];
  Unit& unit = units_[gather.unit];
  // The buffer may be one that an earlier unit has left: compute must be through with it. This is also
  // what keeps the stream from running further ahead than `prefetch`.
  if (last_used_) e.builder.wait(gather_stream_, *last_used_);
  const auto whole = [&](std::int64_t elements, Bytes frozen, Kind kind) {
    return parameter_bytes(s, padded_to_shards(s, elements, kind)) + Bytes{padded_to_shards(s, frozen.count(), kind)};
  };
  const Bytes dense = whole(unit.brought.dense, unit.frozen_dense, Kind::kDense) - unit.saved_dense;
  const Bytes routed = whole(unit.brought.routed, unit.frozen_routed, Kind::kExpert) - unit.saved_routed;
  unit.parameters = e.acquire(gather_stream_, "parameter.unit", dense + routed, plan::Category::kCommunication);
  const auto gather_piece = [&](plan::GroupId group, Bytes size) {
    if (s.host_waits == HostWaits::kGathers)
      for (const plan::StreamId stream : std::set{e.compute, reduce_stream_, gather_stream_}) e.host_waits_for(stream);
    e.builder.collective(gather_stream_, "parameter.unit", {CollectiveKind::kAllGather, group, size, s.dtype, Purpose::kData});
  };
  const auto gather_part = [&](const ReplicaGroups& groups, Kind kind, Bytes size) {
    if (size == Bytes{0}) return;
    const bool whole_from_host = s.offload.shared || !groups.shard;
    if (s.offload.parameters)
      e.builder.copy(gather_stream_, "parameter.unit", plan::CopyKind::kHostToDevice, whole_from_host ? size : Bytes{ceil_div(size.count(), shard_size(s, kind))});
    if (!groups.shard || (s.offload.parameters && s.offload.shared)) return;
    const std::int64_t pieces = s.gather_by_matrix && kind == Kind::kDense ? std::max<std::int64_t>(1, unit.matrices.count) : 1;
    const Bytes piece{size.count() / (pieces * shard_size(s, kind)) * shard_size(s, kind)};
    for (std::int64_t i = 1; i < pieces; ++i, size -= piece) gather_piece(*groups.shard, piece);
    gather_piece(*groups.shard, size);
  };
  gather_part(context_.groups.dense, Kind::kDense, dense);
  gather_part(context_.groups.experts, Kind::kExpert, routed);
  gather.arrived = e.builder.record(gather_stream_);
}

}  // namespace stepcast::parallel
