// models/gpu/gemm.hpp — matrix products by tiles: C is cut into tiles, tiles run in waves over the SMs.
// Model    for a tile (tm, tn) and a split s of k:
//            N = batch * ceil(m/tm) * ceil(n/tn) * s       tiles,  W = ceil(N / SMs) waves           (1)
//            t_tile = max(2 tm tn k' / (e * peak/SMs), (tm + tn) k' b / B_sm) + t_o tm tn / r         (2)
//            t = max(W * t_tile, bytes / (e_m * B_mem)) + t_split                                    (3)
//          and the library takes the tile and split with the least t.
// Symbols  k' [1] = k/s rounded up to the main-loop depth; b [B] per element; e [1] MMA efficiency;
//          B_sm [B/s] what an SM draws: min(its own most, all operand bandwidth / SMs at work), and of it w/16
//          where rows of n or k elements begin on multiples of w < 16 bytes only, a quarter at least; peak [FLOP/s]
//          of the tensor cores, but of the fp32 units in a batch of such matrices;
//          bytes: operands, re-read once per wave where they do not fit in L2, and C; e_m [1];
//          t_o [s] fill and epilogue of a tile of r = 128 x 256 elements; t_split [s] a second pass over
//          C and the fp32 partial sums through L2
// Source   (1) NVIDIA, Matrix Multiplication Background User's Guide (DU-09799), tile and wave
//          quantization; (2) Kerr et al., CUTLASS (2017): an output tile's operands pass through
//          shared memory once per tile; 16-byte alignment: the same guide ("Requirements to use tensor cores"); a quarter: vTrain's
//          heads over 50257 words on an A100 (84 TFLOP/s for 230 over padded ones); batches: bigscience's heads of 225 and 108
//          on A100, 36 and 44 s a step longer than of 224 and 144, or 12 TFLOP/s (19.5 of fp32). Values: calibration/profiles, docs/guide/gpu_model.md
// Valid    row- or column-major operands on tensor cores; checked for m 128 to 32768, n and k 512 to 51200
// Ignores  a library that chooses worse than the best of its tiles; operand layouts; stream-k
// Cost     O(tiles * splits) a shape, some 10 us: callers keep the answer per distinct kernel
// Tests    unit/gpu_model_test, property/gpu_model_property_test, diff/gpu_kernels_test
#pragma once

#include <span>

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

// c_bytes: traffic of C, the read for accumulation included. The k of a weight gradient counts tokens, not elements of a row in memory:
// however many an expert has, its operands' rows begin where those of the layer do.
GemmPlan plan_gemm(const GpuParameters& gpu, const plan::GemmShape& shape, plan::Dtype dtype, double c_bytes, plan::Pass pass = plan::Pass::kForward);

// Products that share n and k and differ in rows (the experts of a mixture): one grouped launch. The
// weights of a group without rows are not read.
struct RowGroup {
  std::int64_t count = 1;
  std::int64_t rows = 0;
};
GemmPlan plan_grouped_gemm(const GpuParameters& gpu, std::span<const RowGroup> groups, std::int64_t n,
                           std::int64_t k, plan::Dtype dtype, double c_bytes);

// Rows [m, k] of 16-bit activations to fp8 with a scale per row: read once, written once.
double quantize_seconds(const GpuParameters& gpu, double elements);

}  // namespace stepcast::gpu
