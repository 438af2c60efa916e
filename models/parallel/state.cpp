#include "models/parallel/state.hpp"

#include "models/parallel/optimizer.hpp"

namespace stepcast::parallel {

namespace {

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
  state.gradient_elements = strategy.zero >= 2 ? shard : model.parameters;
  state.updated_elements = shard;
  state.parameters =
      Bytes{(strategy.zero == 3 ? shard : model.parameters) * plan::element_bytes(strategy.dtype)};
  state.parameters += frozen_bytes(model.frozen, strategy);
  state.gradients = Bytes{state.gradient_elements * plan::element_bytes(strategy.gradient_dtype)};
  state.optimizer = optimizer_states(model, strategy) + Bytes{shard * master};
  return state;
}

}  // namespace stepcast::parallel
