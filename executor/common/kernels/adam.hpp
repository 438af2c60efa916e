// executor/common/kernels/adam.hpp — Adam (Kingma and Ba 2015, algorithm 1, with bias correction), weight decay decoupled as in AdamW
// (Loshchilov and Hutter 2019). 16 bytes read and 12 written for each fp32 parameter.
#pragma once

#include <cmath>
#include <cstdint>

#include "executor/common/kernels/host_device.hpp"

namespace stepcast::executor {

struct AdamSettings {
  float rate = 1e-3F;
  float beta1 = 0.9F;
  float beta2 = 0.999F;
  float epsilon = 1e-8F;
  float weight_decay = 0.0F;
};

namespace kernels {

// What all elements of a step share.
struct AdamStep {
  float beta1, beta2, epsilon;
  float rate;   // corrected for the first moment's bias
  float root;   // 1 / sqrt of the second moment's correction
  float keep;   // weight decay
  float scale;  // of gradients: clipping
};

// `step` counts from 1.
inline AdamStep adam_step(const AdamSettings& s, std::int64_t step, float gradient_scale) {
  const auto t = static_cast<float>(step);
  return {s.beta1, s.beta2, s.epsilon, s.rate / (1.0F - std::pow(s.beta1, t)), 1.0F / std::sqrt(1.0F - std::pow(s.beta2, t)), 1.0F - s.rate * s.weight_decay, gradient_scale};
}

STEPCAST_HOST_DEVICE inline void adam_element(std::int64_t i, const AdamStep& s, float* p, const float* g, float* m, float* v) {
  const float slope = s.scale * g[i];
  m[i] = s.beta1 * m[i] + (1.0F - s.beta1) * slope;
  v[i] = s.beta2 * v[i] + (1.0F - s.beta2) * slope * slope;
  p[i] = s.keep * p[i] - s.rate * m[i] / (std::sqrt(v[i]) * s.root + s.epsilon);
}

}  // namespace kernels
}  // namespace stepcast::executor
