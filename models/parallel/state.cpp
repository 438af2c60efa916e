#include "models/parallel/state.hpp"

#include "models/parallel/offload.hpp"
#include "models/parallel/optimizer.hpp"

#include <set>
#include <utility>
#include <variant>

namespace stepcast::parallel {
namespace {

// Of one tensor for each shape of a weight in the stage's layers.
std::int64_t elements_by_shape(const StageModel& model) {
  std::set<std::pair<std::int64_t, std::int64_t>> shapes;
  for (const StageBlock& block : model.blocks) {
    if (block.role != BlockRole::kLayer) continue;
    for (const workload::Step& step : block.block->backward) {
      const auto* op = std::get_if<workload::Operator>(&step);
      if (op == nullptr || op->kernel.pass != plan::Pass::kWeightGrad || !op->kernel.gemm) continue;
      shapes.emplace(op->kernel.gemm->m, op->kernel.gemm->n);
    }
  }
  std::int64_t elements = 0;
  for (const auto& [m, n] : shapes) elements += m * n;
  return elements;
}

// Whole, or a shard of it where parameters are sharded.
Bytes frozen_bytes(const workload::FrozenWeights& frozen, const Strategy& strategy) {
  const auto shard = [&](Bytes bytes, Kind kind) {
    return strategy.zero == 3 ? Bytes{ceil_div(bytes.count(), shard_size(strategy, kind))} : bytes;
  };
  return shard(frozen.dense, Kind::kDense) + shard(frozen.routed, Kind::kExpert) + frozen.scales;
}

}  // namespace

PersistentState persistent_state(const StageModel& model, const Strategy& strategy) {
  constexpr std::int64_t kFp32Bytes = plan::element_bytes(plan::Dtype::kFp32);
  const std::int64_t shard = updated_by_worker(model, strategy).elements;
  const std::int64_t master = has_master(strategy) ? kFp32Bytes : 0;
  PersistentState state;
  state.gradient_elements = shards_gradients(strategy) ? shard : model.parameters;
  state.updated_elements = shard;
  state.parameters =
      Bytes{(strategy.zero == 3 ? shard : model.parameters) * plan::element_bytes(strategy.dtype)};
  if (strategy.offload.parameters) state.parameters = Bytes{0};
  state.parameters += frozen_bytes(model.frozen, strategy);
  state.gradients = Bytes{state.gradient_elements * plan::element_bytes(strategy.gradient_dtype)};
  state.optimizer = optimizer_states(model, strategy) + Bytes{shard * master};
  if (offloads_gradients(strategy)) state.gradients = Bytes{0};
  if (strategy.offload.states()) state.optimizer -= Bytes{shard * (offloaded_state_bytes(strategy) - (strategy.offload.master && master == 0 ? plan::element_bytes(strategy.dtype) : 0))};
  if (strategy.keeps_buckets) state.buckets = state.gradients;
  if (strategy.keeps_low_gradients && !offloads_gradients(strategy)) state.gradients += Bytes{state.gradient_elements * plan::element_bytes(strategy.dtype)};
  if (strategy.fused_accumulation && strategy.zero < 2)
    state.placeholders = Bytes{elements_by_shape(model) * plan::element_bytes(strategy.dtype)};
  return state;
}

}  // namespace stepcast::parallel
