#include "models/gpu/gemm.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "models/gpu/memory_bound.hpp"

namespace stepcast::gpu {

namespace {

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

constexpr std::array<std::int64_t, 8> kSplits{1, 2, 3, 4, 6, 8, 12, 16};

// Operands as they leave device memory: once where both stay in L2, else a wave of tiles shares its
// rows of A and columns of B and the next wave reads its own.
double operand_bytes(const GpuParameters& gpu, const plan::GemmShape& s, Tile tile, double element) {
  const double m = static_cast<double>(s.m), n = static_cast<double>(s.n), k = static_cast<double>(s.k);
  const double once = (m + n) * k * element;
  if (once <= gpu.hardware.l2.si()) return static_cast<double>(s.batch) * once;
  const double side = std::sqrt(static_cast<double>(gpu.hardware.sm_count));
  const double rows = std::min(m, side * static_cast<double>(tile.m));
  const double columns = std::min(n, side * static_cast<double>(tile.n));
  const double waves = (m / rows) * (n / columns);
  // The operand of one wave's neighbour along the short side stays; hence at least once each.
  return static_cast<double>(s.batch) * std::max(once, waves * std::min(rows, columns) * k * element);
}

double tile_seconds(const GpuParameters& gpu, const plan::GemmShape& s, Tile tile, std::int64_t depth,
                    double rate_per_sm, double bandwidth_per_sm, double element) {
  const double k = static_cast<double>(ceil_div(depth, gpu.gemm.k_block) * gpu.gemm.k_block);
  const double multiply = 2.0 * static_cast<double>(tile.m) * static_cast<double>(tile.n) * k / rate_per_sm;
  const double loaded = static_cast<double>(std::min(tile.m, s.m) + std::min(tile.n, s.n)) * k * element;
  return std::max(multiply, loaded / bandwidth_per_sm) + gpu.gemm.tile_overhead.seconds();
}

}  // namespace

GemmPlan plan_gemm(const GpuParameters& gpu, const plan::GemmShape& shape, plan::Dtype dtype, double c_bytes) {
  const double element = static_cast<double>(plan::element_bytes(dtype));
  const double sms = static_cast<double>(gpu.hardware.sm_count);
  const double efficiency =
      dtype == plan::Dtype::kFp8 ? gpu.gemm.mma_efficiency_fp8 : gpu.gemm.mma_efficiency;
  const double rate_per_sm = gpu.hardware.peak[static_cast<std::size_t>(dtype)].si() * efficiency / sms;
  const double c_elements = static_cast<double>(shape.batch) * static_cast<double>(shape.m) * static_cast<double>(shape.n);

  GemmPlan best;
  best.seconds = std::numeric_limits<double>::infinity();
  for (const Tile tile : gpu.gemm.tiles) {
    const std::int64_t grid = shape.batch * ceil_div(shape.m, tile.m) * ceil_div(shape.n, tile.n);
    const double bytes = operand_bytes(gpu, shape, tile, element) + c_bytes;
    const double moving = memory_seconds(gpu, bytes, gpu.memory.streaming_efficiency);
    for (const std::int64_t split : kSplits) {
      if (split > 1 && (shape.k < 2 * split * gpu.gemm.k_block || grid * split > 2 * gpu.hardware.sm_count)) break;
      GemmPlan plan{.tile = tile, .split = split, .tiles = grid * split};
      plan.waves = ceil_div(plan.tiles, gpu.hardware.sm_count);
      const double at_work = std::min(static_cast<double>(plan.tiles), sms);
      const double bandwidth_per_sm =
          std::min(gpu.memory.sm_bandwidth.si(), gpu.memory.l2_bandwidth.si() / at_work);
      const double tile_time = tile_seconds(gpu, shape, tile, ceil_div(shape.k, split), rate_per_sm,
                                            bandwidth_per_sm, element);
      plan.seconds = std::max(static_cast<double>(plan.waves) * tile_time, moving);
      if (split > 1) {
        const double partial = 2.0 * 4.0 * static_cast<double>(split) * c_elements;
        plan.seconds += gpu.gemm.split_k_cost.seconds() + partial / gpu.memory.l2_bandwidth.si();
      }
      if (plan.seconds < best.seconds) best = plan;
    }
  }
  return best;
}

double quantize_seconds(const GpuParameters& gpu, double elements) {
  return memory_seconds(gpu, 3.0 * elements, gpu.memory.reduction_efficiency);
}

}  // namespace stepcast::gpu
