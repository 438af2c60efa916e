// executor/common/host_adam.hpp — Adam on the host, fp32 (common/kernels/adam.hpp).
#pragma once

#include <cstdint>
#include <span>

#include "executor/common/kernels/adam.hpp"

namespace stepcast::executor {

struct AdamState {
  std::span<float> parameters;
  std::span<const float> gradients;
  std::span<float> first;   // moments
  std::span<float> second;
};

// `step` counts from 1; gradients are multiplied by `gradient_scale`. Requires: spans of one length.
void adam(const AdamSettings& settings, std::int64_t step, const AdamState& state, float gradient_scale = 1.0F);

}  // namespace stepcast::executor
