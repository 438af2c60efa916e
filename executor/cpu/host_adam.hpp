// executor/cpu/host_adam.hpp — Adam (Kingma and Ba 2015, algorithm 1, with bias correction; decoupled weight decay as AdamW) in fp32.
// 16 bytes read and 12 written for each parameter.
#pragma once

#include <cstdint>
#include <span>

namespace stepcast::executor {

struct AdamSettings {
  float rate = 1e-3F;
  float beta1 = 0.9F;
  float beta2 = 0.999F;
  float epsilon = 1e-8F;
  float weight_decay = 0.0F;
};

struct AdamState {
  std::span<float> parameters;
  std::span<const float> gradients;
  std::span<float> first;   // moments
  std::span<float> second;
};

// `step` counts from 1. Requires: spans of one length.
void adam(const AdamSettings& settings, std::int64_t step, const AdamState& state);

}  // namespace stepcast::executor
