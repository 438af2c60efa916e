#include "executor/cpu/host_adam.hpp"

#include <cmath>

#include "sim/base/check.hpp"

namespace stepcast::executor {

void adam(const AdamSettings& s, std::int64_t step, const AdamState& state) {
  const std::size_t n = state.parameters.size();
  SIM_CHECK(state.gradients.size() == n && state.first.size() == n && state.second.size() == n, n);
  const auto t = static_cast<float>(step);
  const float rate = s.rate / (1.0F - std::pow(s.beta1, t));
  const float root = 1.0F / std::sqrt(1.0F - std::pow(s.beta2, t));
  const float keep = 1.0F - s.rate * s.weight_decay;
  float* const p = state.parameters.data();
  const float* const g = state.gradients.data();
  float* const m = state.first.data();
  float* const v = state.second.data();
  for (std::size_t i = 0; i < n; ++i) {
    m[i] = s.beta1 * m[i] + (1.0F - s.beta1) * g[i];
    v[i] = s.beta2 * v[i] + (1.0F - s.beta2) * g[i] * g[i];
    p[i] = keep * p[i] - rate * m[i] / (std::sqrt(v[i]) * root + s.epsilon);
  }
}

}  // namespace stepcast::executor
