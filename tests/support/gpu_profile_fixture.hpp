// tests/support/gpu_profile_fixture.hpp — a catalogue entry and a profile with round numbers.
#pragma once

#include "calibration/profile.hpp"

namespace stepcast::calibration::testing {

// 100 SMs at 1 GHz, 100 TFLOP/s of bf16, no fp8, 1 TB/s.
inline topology::Gpu round_gpu_entry() {
  topology::Gpu gpu;
  gpu.name = "round-gpu";
  gpu.aliases = {"Round_GPU 16GB"};
  gpu.architecture = "9.9";
  gpu.memory_bandwidth.value = Bandwidth::from_si(1e12);
  gpu.l2 = Figure<Bytes>{Bytes{50'000'000}, topology::Basis::kAssumed, "test"};
  gpu.sm_count.value = 100;
  gpu.boost_clock = Figure<Frequency>{Frequency::from_si(1e9), topology::Basis::kAssumed, "test"};
  gpu.fp32 = Figure<FlopRate>{FlopRate::from_si(10e12), topology::Basis::kAssumed, "test"};
  gpu.bf16 = Figure<FlopRate>{FlopRate::from_si(100e12), topology::Basis::kAssumed, "test"};
  return gpu;
}

inline Profile round_profile() {
  Profile p;
  p.name = "round";
  p.gpus = {"round-gpu"};
  p.memory.streaming_efficiency.value = 0.8;
  p.memory.reduction_efficiency.value = 0.5;
  p.memory.l2_bytes_per_clock.value = 100;
  p.gemm.tiles = {.rows = {64, 128}, .columns = {128}, .largest_area = 16384, .split_k = true, .source = "test"};
  p.gemm.fp8_tiles = p.gemm.tiles;
  p.gemm.mma_efficiency.value = 0.5;
  p.gemm.fp8_mma_efficiency.value = 0.5;
  p.gemm.memory_efficiency.value = 0.8;
  p.gemm.operand_bytes_per_clock.value = 50;
  p.gemm.sm_bytes_per_clock.value = 60;
  p.attention.query_block.value = 128;
  p.attention.key_block.value = 128;
  p.attention.mma_efficiency.value = 0.5;
  p.attention.backward_mma_efficiency.value = 0.25;
  p.attention.scores_per_clock.value = 16;
  p.attention.softmax_overlap.value = 1;
  p.overhead.kernel_latency.value = Duration::microseconds(1);
  p.overhead.kernel_gap.value = Duration::microseconds(1);
  p.clock.sustained_fraction.value = 0.8;
  p.clock.power_response.value = Duration::microseconds(25'000);
  return p;
}

}  // namespace stepcast::calibration::testing
