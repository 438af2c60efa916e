// models/gpu/gemm.hpp — matrix products by tiles: C is cut into tiles, tiles run in waves over the SMs.
// Model    for a tile (tm, tn) and a split s of k:
//            N = batch * ceil(m/tm) * ceil(n/tn) * s       tiles,  W = ceil(N / SMs) waves           (1)
//            t_tile = max(2 tm tn k' / (e * peak/SMs), (tm + tn) k' b / B_sm) + t_o                  (2)
//            t = t0 + max(W * t_tile, bytes / (e_m * B_mem)) + t_split                               (3)
//          and the library takes the tile and split with the least t.
// Symbols  k' [1] = k/s rounded up to the main-loop depth; b [B] per element; e [1] MMA efficiency;
//          B_sm [B/s] an SM's share of L2: min(most one SM draws, L2 bandwidth / SMs at work);
//          bytes: operands, re-read once per wave where they do not stay in L2, and C; t_o [s] fill
//          and epilogue per tile; t_split [s] second pass over fp32 partial sums
// Source   (1) NVIDIA, Matrix Multiplication Background User's Guide (DU-09799), tile and wave
//          quantization; (2) Kerr et al., CUTLASS (2017): an output tile's operands pass through
//          shared memory once per tile
// Valid    row- or column-major operands on tensor cores
// Ignores  the library choosing worse than the best; bank conflicts; layouts
#pragma once

#include "models/gpu/gpu_parameters.hpp"
#include "sim/plan/kernel.hpp"

namespace stepcast::gpu {

struct GemmPlan {
  Tile tile;
  std::int64_t split = 1;
  std::int64_t tiles = 0;  // over batch and split
  std::int64_t waves = 0;
  double seconds = 0;      // without the kernel latency
};

// c_bytes: traffic of C, the read for accumulation included.
GemmPlan plan_gemm(const GpuParameters& gpu, const plan::GemmShape& shape, plan::Dtype dtype, double c_bytes);

// Rows [m, k] of 16-bit activations to fp8 with scales: read twice at 2 bytes (one pass from L2 where it
// fits), written once.
double quantize_seconds(const GpuParameters& gpu, double elements);

}  // namespace stepcast::gpu
