#include "models/gpu/gemm.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "models/gpu/memory_bound.hpp"

namespace stepcast::gpu {

namespace {

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

constexpr std::int64_t kWidestLoad = 16;  // [B] of a thread

// [B] that rows of n and of k elements begin on multiples of, up to the widest load.
std::int64_t alignment(std::int64_t n, std::int64_t k, std::int64_t element) {
  std::int64_t width = kWidestLoad;
  while ((n * element) % width != 0 || (k * element) % width != 0) width /= 2;
  return std::max(width, element);
}

double load_share(std::int64_t aligned) {
  constexpr std::int64_t kLeast = 4;  // [B] of two-byte loads: head products over 50257 words (vTrain, A100) run at 84 TFLOP/s, not 43
  return static_cast<double>(std::max(aligned, kLeast)) / static_cast<double>(kWidestLoad);
}

// Matrices of a batch that begin on less than 16 bytes do not get to the tensor cores.
double rate(const GpuParameters& gpu, plan::Dtype dtype, bool batched, std::int64_t aligned) {
  const double tensor = gpu.hardware.peak[static_cast<std::size_t>(dtype)].si();
  const double plain = gpu.hardware.peak[static_cast<std::size_t>(plan::Dtype::kFp32)].si();
  return batched && aligned < kWidestLoad && plain > 0.0 ? std::min(tensor, plain) : tensor;
}

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

class Problem {
 public:
  Problem(const GpuParameters& gpu, std::span<const RowGroup> groups, std::int64_t n, std::int64_t k, plan::Dtype dtype,
          double c_bytes, bool batched, std::int64_t aligned)
      : gpu_{gpu}, groups_{groups}, n_{n}, k_{k}, element_{static_cast<double>(plan::element_bytes(dtype))}, c_bytes_{c_bytes},
        library_{dtype == plan::Dtype::kFp8 ? gpu.gemm.fp8 : gpu.gemm.standard},
        load_share_{load_share(aligned)},
        rate_per_sm_{rate(gpu, dtype, batched, aligned) * library_.mma_efficiency /
                     static_cast<double>(gpu.hardware.sm_count)} {
    for (const RowGroup& group : groups) {
      all_rows_ += group.count * group.rows;
      longest_ = std::max(longest_, group.rows);
    }
  }

  // The tile and split with the least time on so many SMs.
  [[nodiscard]] GemmPlan choose(std::int64_t sms) const {
    GemmPlan best;
    if (all_rows_ == 0) return best;
    best.seconds = std::numeric_limits<double>::infinity();
    for (const Tile tile : library_.tiles) {
      const Traffic traffic = traffic_of(tile);
      for (const std::int64_t split : kSplits) {
        const bool useful = library_.splits_k && k_ >= 2 * split * gpu_.gemm.k_block && traffic.grid * split <= 2 * sms;
        if (split > 1 && !useful) break;
        const GemmPlan plan = run(tile, split, sms, traffic);
        if (plan.seconds < best.seconds) best = plan;
      }
    }
    return best;
  }

  [[nodiscard]] GemmPlan run(Tile tile, std::int64_t split, std::int64_t sms) const {
    return run(tile, split, sms, traffic_of(tile));
  }

 private:
  struct Traffic {
    std::int64_t grid = 0;  // tiles before k is split
    double moving_s = 0;
  };

  [[nodiscard]] Traffic traffic_of(Tile tile) const {
    std::int64_t row_tiles = 0;
    double bytes = c_bytes_;
    for (const RowGroup& group : groups_) {
      row_tiles += group.count * ceil_div(group.rows, tile.m);
      if (group.rows > 0)
        bytes += static_cast<double>(group.count) * operand_bytes(gpu_, static_cast<double>(group.rows), static_cast<double>(n_),
                                                                  static_cast<double>(k_), tile, element_);
    }
    return {row_tiles * ceil_div(n_, tile.n), bytes / (gpu_.gemm.memory_efficiency * gpu_.hardware.memory_bandwidth.si())};
  }

  [[nodiscard]] GemmPlan run(Tile tile, std::int64_t split, std::int64_t sms, const Traffic& traffic) const {
    const std::int64_t tiles = traffic.grid * split;
    GemmPlan plan{.tile = tile, .split = split, .tiles = tiles, .waves = ceil_div(tiles, sms)};
    const double at_work = static_cast<double>(std::min(tiles, sms));
    const double bandwidth_per_sm = load_share_ * std::min(gpu_.gemm.sm_bandwidth.si(), gpu_.gemm.operand_bandwidth.si() / at_work);
    const double one = tile_seconds(gpu_, tile, static_cast<double>(longest_), static_cast<double>(n_), ceil_div(k_, split),
                                    rate_per_sm_, bandwidth_per_sm, element_);
    plan.seconds = std::max(static_cast<double>(plan.waves) * one, traffic.moving_s);
    if (split > 1) {
      // Every part of the sum is written and read once in fp32.
      const double partial = 2.0 * 4.0 * static_cast<double>(split * all_rows_) * static_cast<double>(n_);
      plan.seconds += gpu_.gemm.split_k_cost.seconds() + partial / gpu_.memory.l2_bandwidth.si();
    }
    return plan;
  }

  const GpuParameters& gpu_;
  std::span<const RowGroup> groups_;
  std::int64_t n_;
  std::int64_t k_;
  double element_;
  double c_bytes_;
  const GemmLibrary& library_;
  double load_share_;   // [1] of the operand bandwidth
  double rate_per_sm_;  // [FLOP/s]
  std::int64_t all_rows_ = 0;
  std::int64_t longest_ = 0;
};

GemmPlan plan_groups(const GpuParameters& gpu, const Problem& problem) {
  const GemmPlan best = problem.choose(gpu.hardware.sm_count);
  return gpu.hardware.sms_taken > 0 && best.tiles > 0 ? problem.run(best.tile, best.split, gpu.hardware.free_sms()) : best;
}

}  // namespace

GemmPlan plan_grouped_gemm(const GpuParameters& gpu, std::span<const RowGroup> groups, std::int64_t n,
                           std::int64_t k, plan::Dtype dtype, double c_bytes) {
  return plan_groups(gpu, Problem{gpu, groups, n, k, dtype, c_bytes, false, alignment(n, k, plan::element_bytes(dtype))});
}

GemmPlan plan_gemm(const GpuParameters& gpu, const plan::GemmShape& shape, plan::Dtype dtype, double c_bytes, plan::Pass pass) {
  const RowGroup group{.count = shape.batch, .rows = shape.m};
  const std::int64_t row = pass == plan::Pass::kWeightGrad ? shape.n : shape.k;
  return plan_groups(gpu, Problem{gpu, {&group, 1}, shape.n, shape.k, dtype, c_bytes, shape.batch > 1, alignment(shape.n, row, plan::element_bytes(dtype))});
}

double quantize_seconds(const GpuParameters& gpu, double elements) {
  return memory_seconds(gpu, 3.0 * elements, gpu.memory.reduction_efficiency);
}

}  // namespace stepcast::gpu
