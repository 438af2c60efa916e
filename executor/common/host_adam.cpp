#include "executor/common/host_adam.hpp"

#include "sim/base/check.hpp"

namespace stepcast::executor {

void adam(const AdamSettings& settings, std::int64_t step, const AdamState& state, float gradient_scale) {
  const std::size_t n = state.parameters.size();
  SIM_CHECK(state.gradients.size() == n && state.first.size() == n && state.second.size() == n, n);
  const kernels::AdamStep shared = kernels::adam_step(settings, step, gradient_scale);
  float* const p = state.parameters.data();
  const float* const g = state.gradients.data();
  float* const m = state.first.data();
  float* const v = state.second.data();
  for (std::size_t i = 0; i < n; ++i) kernels::adam_element(static_cast<std::int64_t>(i), shared, p, g, m, v);
}

}  // namespace stepcast::executor
