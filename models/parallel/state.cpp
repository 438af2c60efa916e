#include "models/parallel/state.hpp"

#include "models/parallel/optimizer.hpp"

namespace stepcast::parallel {

PersistentState persistent_state(const StageModel& model, const Strategy& strategy) {
  constexpr std::int64_t kFp32Bytes = plan::element_bytes(plan::Dtype::kFp32);
  const std::int64_t shard = updated_by_worker(model, strategy).elements;
  const std::int64_t master = has_master(strategy) ? kFp32Bytes : 0;
  PersistentState state;
  state.gradient_elements = strategy.zero >= 2 ? shard : model.parameters;
  state.updated_elements = shard;
  state.parameters =
      Bytes{(strategy.zero == 3 ? shard : model.parameters) * plan::element_bytes(strategy.dtype)};
  state.gradients = Bytes{state.gradient_elements * plan::element_bytes(strategy.gradient_dtype)};
  state.optimizer = optimizer_states(model, strategy) + Bytes{shard * master};
  return state;
}

}  // namespace stepcast::parallel
