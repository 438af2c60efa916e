// executor/common/kernels/norm.hpp — RMSNorm (Zhang and Sennrich 2019): y = g x / rms(x), rms(x) = sqrt(mean(x^2) + epsilon).
// Backward with r = 1 / rms, n = width:  dx = r (g dy) - x r^3 / n * sum(g dy x);  dg = sum over rows of dy x r
#pragma once

#include <cmath>
#include <cstdint>

#include "executor/common/kernels/host_device.hpp"

namespace stepcast::executor::kernels {

inline constexpr float kNormEpsilon = 1e-5F;

struct Norm {
  std::int64_t rows = 0;
  std::int64_t width = 0;
  const float* x = nullptr;     // [rows, width]
  const float* gain = nullptr;  // [width]
};

// One row: y and r.
STEPCAST_HOST_DEVICE inline void norm_row(std::int64_t row, const Norm& n, float* y, float* inverse) {
  const float* const x = n.x + row * n.width;
  float squares = 0.0F;
  for (std::int64_t i = 0; i < n.width; ++i) squares += x[i] * x[i];
  const float r = 1.0F / std::sqrt(squares / static_cast<float>(n.width) + kNormEpsilon);
  inverse[row] = r;
  for (std::int64_t i = 0; i < n.width; ++i) y[row * n.width + i] = n.gain[i] * x[i] * r;
}

// One row of dx.
STEPCAST_HOST_DEVICE inline void norm_gradient_row(std::int64_t row, const Norm& n, const float* inverse, const float* dy, float* dx) {
  const std::int64_t at = row * n.width;
  const float r = inverse[row];
  float along = 0.0F;
  for (std::int64_t i = 0; i < n.width; ++i) along += n.gain[i] * dy[at + i] * n.x[at + i];
  const float back = along * r * r * r / static_cast<float>(n.width);
  for (std::int64_t i = 0; i < n.width; ++i) dx[at + i] = r * n.gain[i] * dy[at + i] - back * n.x[at + i];
}

// One column of dg, added to what is there.
STEPCAST_HOST_DEVICE inline void norm_gain_gradient(std::int64_t column, const Norm& n, const float* inverse, const float* dy, float* dgain) {
  float sum = 0.0F;
  for (std::int64_t row = 0; row < n.rows; ++row) sum += dy[row * n.width + column] * n.x[row * n.width + column] * inverse[row];
  dgain[column] += sum;
}

}  // namespace stepcast::executor::kernels
