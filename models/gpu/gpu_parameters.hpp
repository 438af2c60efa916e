// models/gpu/gpu_parameters.hpp — the figures the GPU model computes with, as plain values. Hardware
// figures come from the catalogue (topologies/), the rest from a profile (calibration/profiles/),
// where each has its unit, basis and source. Nothing here depends on a scenario or on a shape.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/plan/kernel.hpp"

namespace stepcast::gpu {

// The part of C that one streaming multiprocessor (SM) works on at a time.
struct Tile {
  std::int64_t m = 0;
  std::int64_t n = 0;
  friend auto operator<=>(const Tile&, const Tile&) = default;
};

struct HardwareParameters {
  // Dense tensor-core rate by plan::Dtype; zero where the GPU has no such path.
  std::array<FlopRate, plan::kDtypeCount> peak{};
  FlopRate vector_fp32;        // CUDA cores
  Bandwidth memory_bandwidth;  // HBM, GDDR
  Bytes l2;
  std::int64_t sm_count = 0;
  std::int64_t sms_taken = 0;  // by kernels of other streams: libraries choose as if they were free
  Frequency clock;             // SM clock while kernels run

  [[nodiscard]] std::int64_t free_sms() const { return sm_count - sms_taken; }
};

struct MemoryParameters {
  double streaming_efficiency = 0;  // [1] of memory_bandwidth, large elementwise kernels
  double reduction_efficiency = 0;  // [1] the same for row reductions: norm, softmax, loss
  Bandwidth l2_bandwidth;           // streams that stay in L2, all SMs together
};

// The kernels that a library offers for one kind of inputs.
struct GemmLibrary {
  std::vector<Tile> tiles;
  bool splits_k = true;        // may cut k where tiles are fewer than SMs
  double mma_efficiency = 0;   // [1] of the peak while the main loop runs
};

struct GemmParameters {
  GemmLibrary standard;        // 16-bit, TF32 and fp32 inputs
  GemmLibrary fp8;
  std::int64_t k_block = 64;   // depth of one main-loop step
  double memory_efficiency = 0;  // [1] of memory_bandwidth while operands and C stream
  Bandwidth operand_bandwidth;   // L2 to shared memory, all SMs together; one read may feed several (multicast)
  Bandwidth sm_bandwidth;        // the most that one SM draws
  Duration tile_overhead;      // fill and epilogue that nothing hides, for kReferenceTile elements of C
  Duration split_k_cost;       // partial sums: the second pass over C
};
inline constexpr double kReferenceTile = 128.0 * 256.0;

struct AttentionParameters {
  std::int64_t query_block = 128;
  std::int64_t key_block = 128;
  double mma_efficiency = 0;           // [1] of the peak while the main loop runs, forward
  double backward_mma_efficiency = 0;  // [1]
  double scores_per_clock = 0;         // softmax scores that one SM finishes per clock
  double softmax_overlap = 0;          // [1] share of the shorter of softmax and MMA that is hidden
  Duration block_overhead;             // per query block: load of Q, epilogue
  double tail_share = 0;               // [1] of the longest item that SMs idle at the end; 0: longest items go first
};

// Kernels' time over their time alone, while the other workers of the host run the same kind: what cores do to each other through
// memory and caches. 1: nothing.
struct Crowding {
  double products = 1.0;    // [1]
  double attention = 1.0;
  double streams = 1.0;
  double reductions = 1.0;  // norm, softmax, loss
};

struct GpuParameters {
  HardwareParameters hardware;
  MemoryParameters memory;
  GemmParameters gemm;
  AttentionParameters attention;
  Crowding crowding{};
  Duration kernel_latency;  // a kernel that does nothing, start to end on the device
  Duration kernel_gap;      // idle between two dependent kernels of one stream
  Duration host_launch;     // host time per kernel, framework included
  Duration host_collective; // host time per collective, send or receive, framework included
  Duration collective_wait{};  // device time of a collective beyond its own: streams that wait for each other, ranks not together
  Duration host_recompute{};  // of a block that is computed again, beside its kernels
  Duration host_step{};       // of a step, before its first kernel
  Bytes context;            // CUDA context and libraries' code
  Bytes gemm_workspace;     // cuBLAS and cuBLASLt workspace
};

// The same GPU at `fraction` of its clock: everything inside the chip slows with it, memory does not.
GpuParameters at_clock(GpuParameters gpu, double fraction);

// What kernels of other streams take from a GPU.
struct Taken {
  std::int64_t sms = 0;
  Bandwidth memory;
  friend bool operator==(const Taken&, const Taken&) = default;
};
// The same GPU for the kernels that run beside them. A quarter of the SMs and half of the memory bandwidth stay, whatever
// the others want: both sides then get less.
GpuParameters beside(GpuParameters gpu, const Taken& taken);

}  // namespace stepcast::gpu
