// executor/common/kernels/elementwise.hpp — SwiGLU (Shazeer 2020): a = silu(gate) * up, and sums.
#pragma once

#include <cmath>
#include <cstdint>

#include "executor/common/kernels/host_device.hpp"

namespace stepcast::executor::kernels {

// Index over rows * width. A row of `u` is the gate, then the other half.
STEPCAST_HOST_DEVICE inline void swiglu(std::int64_t index, std::int64_t width, const float* u, float* a) {
  const std::int64_t at = index / width * 2 * width + index % width;
  const float gate = u[at];
  a[index] = gate / (1.0F + std::exp(-gate)) * u[at + width];
}

STEPCAST_HOST_DEVICE inline void swiglu_gradient(std::int64_t index, std::int64_t width, const float* u, const float* da, float* du) {
  const std::int64_t at = index / width * 2 * width + index % width;
  const float gate = u[at];
  const float sigmoid = 1.0F / (1.0F + std::exp(-gate));
  du[at] = da[index] * u[at + width] * sigmoid * (1.0F + gate * (1.0F - sigmoid));
  du[at + width] = da[index] * gate * sigmoid;
}

STEPCAST_HOST_DEVICE inline void add(std::int64_t index, const float* a, const float* b, float* sum) { sum[index] = a[index] + b[index]; }

}  // namespace stepcast::executor::kernels
