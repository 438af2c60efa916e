#include "models/parallel/state.hpp"

namespace stepcast::parallel {

PersistentState persistent_state(const StageModel& model, const Strategy& strategy) {
  constexpr std::int64_t kFp32Bytes = plan::element_bytes(plan::Dtype::kFp32);
  std::int64_t shard = 0;
  for (const Kind kind : {Kind::kDense, Kind::kExpert}) shard += ceil_div(model.parameters_of(kind), shard_size(strategy, kind));
  const std::int64_t states = moments(strategy) + (has_master(strategy) ? 1 : 0);
  PersistentState state;
  state.gradient_elements = strategy.zero >= 2 ? shard : model.parameters;
  state.updated_elements = shard;
  state.parameters =
      Bytes{(strategy.zero == 3 ? shard : model.parameters) * plan::element_bytes(strategy.dtype)};
  state.gradients = Bytes{state.gradient_elements * plan::element_bytes(strategy.gradient_dtype)};
  state.optimizer = Bytes{shard * states * kFp32Bytes};
  return state;
}

}  // namespace stepcast::parallel
