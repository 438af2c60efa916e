// models/gpu/gpu_model.hpp — how long one device kernel runs alone: roofs, quantized work, floors.
// Model    t = launches * t0 + max(FLOPs / (peak * e(shape)), bytes / (bandwidth * e(size)))       (1)
//          GEMM: gemm.hpp, of several launches as many products of an equal part of the batch, one after another; attention: attention.hpp; everything else: memory_bound.hpp
// Symbols  t0 [s] kernel latency; e [1] efficiency that follows from tiles, waves and sizes
// Source   (1) roofline: Williams, Waterman, Patterson, CACM 52(4) 2009
// Valid    one kernel alone on the GPU with its inputs in device memory
// Ignores  clock changes (power model), kernels that run at the same time, TLB misses
// Tests    unit/gpu_model_test, property/gpu_model_property_test, diff/gpu_kernels_test
#pragma once

#include "models/gpu/gpu_parameters.hpp"
#include "sim/plan/kernel.hpp"

namespace stepcast::gpu {

class GpuModel {
 public:
  // Requires: positive rates, SMs and at least one tile (checked).
  explicit GpuModel(GpuParameters parameters);

  // Time on the device, from the kernel's start to its end; the gap to the next kernel is not in it.
  // An fp8 GEMM finds its operands quantised: casts are kernels of their own.
  // Requires: supports(kernel.dtype) for GEMM and attention, and their shape set; launches that divide a GEMM's batch.
  [[nodiscard]] Duration time(const plan::Kernel& kernel) const;

  // Host time to issue the kernel (all its launches).
  [[nodiscard]] Duration launch_cost(const plan::Kernel& kernel) const;

  // Idle between two dependent kernels of one stream that are both already queued.
  [[nodiscard]] Duration kernel_gap() const { return parameters_.kernel_gap; }

  [[nodiscard]] bool supports(plan::Dtype dtype) const;
  [[nodiscard]] FlopRate peak(plan::Dtype dtype) const;
  [[nodiscard]] const GpuParameters& parameters() const { return parameters_; }

 private:
  [[nodiscard]] double crowding_of(plan::OpClass op) const;  // of kernels that move data
  GpuParameters parameters_;
};

}  // namespace stepcast::gpu
