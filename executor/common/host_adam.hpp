// executor/common/host_adam.hpp — Adam on the host, fp32 (common/kernels/adam.hpp), by OpenMP threads (where it is) and the vector units of the machine that it runs on.
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

// `step` counts from 1; gradients are multiplied by `gradient_scale`; by so many threads. Requires: spans of one length.
void adam(const AdamSettings& settings, std::int64_t step, const AdamState& state, float gradient_scale = 1.0F, int threads = 1);

}  // namespace stepcast::executor
