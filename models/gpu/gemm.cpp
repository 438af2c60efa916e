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

// Operands of one product as they leave device memory: once where both stay in L2, else a wave of
// tiles shares its rows of A and columns of B, and the next wave keeps the longer of the two.
double operand_bytes(const GpuParameters& gpu, double m, double n, double k, Tile tile, double element) {
  const double once = (m + n) * k * element;
  if (once <= gpu.hardware.l2.si()) return once;
  const double side = std::sqrt(static_cast<double>(gpu.hardware.sm_count));
  const double rows = std::min(m, side * static_cast<double>(tile.m));
  const double columns = std::min(n, side * static_cast<double>(tile.n));
  const double waves = (m / rows) * (n / columns);
  return std::max(once, waves * std::min(rows, columns) * k * element);
}

// What one tile costs its SM, with k cut to `depth`.
double tile_seconds(const GpuParameters& gpu, Tile tile, double rows, double columns, std::int64_t depth,
                    double rate_per_sm, double bandwidth_per_sm, double element) {
  const double k = static_cast<double>(ceil_div(depth, gpu.gemm.k_block) * gpu.gemm.k_block);
  const double area = static_cast<double>(tile.m) * static_cast<double>(tile.n);
  const double loaded =
      (std::min(static_cast<double>(tile.m), rows) + std::min(static_cast<double>(tile.n), columns)) * k * element;
  return std::max(2.0 * area * k / rate_per_sm, loaded / bandwidth_per_sm) +
         area / kReferenceTile * gpu.gemm.tile_overhead.seconds();
}

}  // namespace

GemmPlan plan_grouped_gemm(const GpuParameters& gpu, std::span<const RowGroup> groups, std::int64_t n,
                           std::int64_t k, plan::Dtype dtype, double c_bytes) {
  const double element = static_cast<double>(plan::element_bytes(dtype));
  const std::int64_t sms = gpu.hardware.sm_count;
  const GemmLibrary& library = dtype == plan::Dtype::kFp8 ? gpu.gemm.fp8 : gpu.gemm.standard;
  const double rate_per_sm = gpu.hardware.peak[static_cast<std::size_t>(dtype)].si() *
                             library.mma_efficiency / static_cast<double>(sms);
  std::int64_t all_rows = 0;
  std::int64_t longest = 0;
  for (const RowGroup& group : groups) {
    all_rows += group.count * group.rows;
    longest = std::max(longest, group.rows);
  }

  GemmPlan best;
  if (all_rows == 0) return best;
  best.seconds = std::numeric_limits<double>::infinity();
  for (const Tile tile : library.tiles) {
    std::int64_t row_tiles = 0;
    double bytes = c_bytes;
    for (const RowGroup& group : groups) {
      row_tiles += group.count * ceil_div(group.rows, tile.m);
      if (group.rows > 0)
        bytes += static_cast<double>(group.count) * operand_bytes(gpu, static_cast<double>(group.rows),
                                                                  static_cast<double>(n), static_cast<double>(k),
                                                                  tile, element);
    }
    const std::int64_t grid = row_tiles * ceil_div(n, tile.n);
    const double moving = bytes / (gpu.gemm.memory_efficiency * gpu.hardware.memory_bandwidth.si());
    for (const std::int64_t split : kSplits) {
      const bool useful = library.splits_k && k >= 2 * split * gpu.gemm.k_block && grid * split <= 2 * sms;
      if (split > 1 && !useful) break;
      GemmPlan plan{.tile = tile, .split = split, .tiles = grid * split, .waves = ceil_div(grid * split, sms)};
      const double at_work = static_cast<double>(std::min(plan.tiles, sms));
      const double bandwidth_per_sm = std::min(gpu.gemm.sm_bandwidth.si(), gpu.gemm.operand_bandwidth.si() / at_work);
      const double one = tile_seconds(gpu, tile, static_cast<double>(longest), static_cast<double>(n),
                                      ceil_div(k, split), rate_per_sm, bandwidth_per_sm, element);
      plan.seconds = std::max(static_cast<double>(plan.waves) * one, moving);
      if (split > 1) {
        // Every part of the sum is written and read once in fp32.
        const double partial = 2.0 * 4.0 * static_cast<double>(split * all_rows) * static_cast<double>(n);
        plan.seconds += gpu.gemm.split_k_cost.seconds() + partial / gpu.memory.l2_bandwidth.si();
      }
      if (plan.seconds < best.seconds) best = plan;
    }
  }
  return best;
}

GemmPlan plan_gemm(const GpuParameters& gpu, const plan::GemmShape& shape, plan::Dtype dtype, double c_bytes) {
  const RowGroup group{.count = shape.batch, .rows = shape.m};
  return plan_grouped_gemm(gpu, {&group, 1}, shape.n, shape.k, dtype, c_bytes);
}

double quantize_seconds(const GpuParameters& gpu, double elements) {
  return memory_seconds(gpu, 3.0 * elements, gpu.memory.reduction_efficiency);
}

}  // namespace stepcast::gpu
