// tests/support/gpu_fixture.hpp — a GPU with round numbers, so that expected times can be worked by hand.
#pragma once

#include "models/gpu/gpu_parameters.hpp"

namespace stepcast::gpu::testing {

// 100 SMs of 1 TFLOP/s (16-bit), 1 TB/s of memory, 10 TB/s of L2 that never limits a tile, 1 us floor.
inline GpuParameters round_gpu() {
  GpuParameters p;
  const auto rate = [&](plan::Dtype dtype) -> FlopRate& { return p.hardware.peak[static_cast<std::size_t>(dtype)]; };
  rate(plan::Dtype::kBf16) = FlopRate::from_si(100e12);
  rate(plan::Dtype::kFp16) = FlopRate::from_si(100e12);
  rate(plan::Dtype::kFp32) = FlopRate::from_si(10e12);
  p.hardware.vector_fp32 = FlopRate::from_si(10e12);
  p.hardware.memory_bandwidth = Bandwidth::from_si(1e12);
  p.hardware.l2 = Bytes{50'000'000};
  p.hardware.sm_count = 100;
  p.hardware.clock = Frequency::from_si(1e9);
  p.memory = {.streaming_efficiency = 0.8,
              .reduction_efficiency = 0.5,
              .l2_bandwidth = Bandwidth::from_si(10e12)};
  p.gemm.memory_efficiency = 0.8;
  p.gemm.operand_bandwidth = Bandwidth::from_si(100e12);
  p.gemm.sm_bandwidth = Bandwidth::from_si(1e12);
  p.gemm.standard = {.tiles = {{128, 128}}, .splits_k = true, .mma_efficiency = 0.5};
  p.gemm.fp8 = p.gemm.standard;
  p.attention.mma_efficiency = 0.5;
  p.attention.backward_mma_efficiency = 0.25;
  p.attention.scores_per_clock = 16;
  p.attention.softmax_overlap = 1.0;
  p.kernel_latency = Duration::microseconds(1);
  p.kernel_gap = Duration::nanoseconds(500);
  p.host_launch = Duration::microseconds(5);
  return p;
}

}  // namespace stepcast::gpu::testing
