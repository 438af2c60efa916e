#include "models/gpu/memory_bound.hpp"

#include <algorithm>

namespace stepcast::gpu {

double memory_seconds(const GpuParameters& gpu, double bytes, double efficiency) {
  const double hit = std::clamp(4.0 * (1.0 - bytes / gpu.hardware.l2.si()), 0.0, 1.0);
  return bytes * (hit / gpu.memory.l2_bandwidth.si() +
                  (1.0 - hit) / (efficiency * gpu.hardware.memory_bandwidth.si()));
}

bool reduces_rows(plan::OpClass op) {
  return op == plan::OpClass::kNorm || op == plan::OpClass::kSoftmax || op == plan::OpClass::kLoss;
}

double memory_bound_seconds(const GpuParameters& gpu, const plan::Kernel& kernel) {
  const double efficiency =
      reduces_rows(kernel.op) ? gpu.memory.reduction_efficiency : gpu.memory.streaming_efficiency;
  const double moving = memory_seconds(gpu, kernel.read.si() + kernel.written.si(), efficiency);
  const double computing = kernel.flops.si() / gpu.hardware.vector_fp32.si();
  return std::max(moving, computing);
}

}  // namespace stepcast::gpu
