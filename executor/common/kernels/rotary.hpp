// executor/common/kernels/rotary.hpp — rotary positions (Su et al. 2021), halves of a head paired as Llama pairs them:
// (a, b) at position p, pair i of dim / 2 turns by p * base^(-2i/dim); backward turns the other way.
#pragma once

#include <cmath>
#include <cstdint>

#include "executor/common/kernels/host_device.hpp"

namespace stepcast::executor::kernels {

inline constexpr float kRotaryBase = 10000.0F;

struct Rotary {
  std::int64_t sequence = 0;  // rows of one sample: positions start anew behind them
  std::int64_t heads = 0;     // that turn, first in a row
  std::int64_t dim = 0;
  std::int64_t width = 0;     // of a row
  float direction = 1.0F;     // -1: backward
};

// Index over rows * heads * dim / 2.
STEPCAST_HOST_DEVICE inline void rotate_pair(std::int64_t index, const Rotary& r, float* rows) {
  const std::int64_t half = r.dim / 2;
  const std::int64_t pair = index % half;
  const std::int64_t head = index / half % r.heads;
  const std::int64_t row = index / half / r.heads;
  const auto position = static_cast<float>(row % r.sequence);
  const float angle = r.direction * position * std::pow(kRotaryBase, -2.0F * static_cast<float>(pair) / static_cast<float>(r.dim));
  float* const at = rows + row * r.width + head * r.dim + pair;
  const float a = at[0];
  const float b = at[half];
  at[0] = a * std::cos(angle) - b * std::sin(angle);
  at[half] = a * std::sin(angle) + b * std::cos(angle);
}

}  // namespace stepcast::executor::kernels
