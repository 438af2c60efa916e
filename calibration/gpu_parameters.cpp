#include "calibration/gpu_parameters.hpp"

#include "sim/base/text.hpp"

#include <algorithm>
#include <cmath>

#include "sim/base/diagnostic.hpp"

namespace stepcast::calibration {

namespace {

// Where the catalogue quotes no clock: the order of every data-centre GPU since 2017 (1.3 to 2.1 GHz).
constexpr double kTypicalClock = 1.7e9;  // [Hz]

gpu::GemmLibrary library(const TileProfile& tiles, double mma_efficiency) {
  gpu::GemmLibrary made{.tiles = {}, .splits_k = tiles.split_k, .mma_efficiency = mma_efficiency};
  for (const std::int64_t rows : tiles.rows)
    for (const std::int64_t columns : tiles.columns)
      if (rows * columns <= tiles.largest_area) made.tiles.push_back({rows, columns});
  return made;
}

gpu::HardwareParameters hardware(const topology::Gpu& gpu) {
  gpu::HardwareParameters h;
  const auto set = [&](plan::Dtype dtype, const std::optional<Figure<FlopRate>>& rate) {
    if (rate) h.peak[static_cast<std::size_t>(dtype)] = rate->value;
  };
  set(plan::Dtype::kFp32, gpu.fp32);
  set(plan::Dtype::kTf32, gpu.tf32);
  set(plan::Dtype::kFp16, gpu.fp16);
  set(plan::Dtype::kBf16, gpu.bf16);
  set(plan::Dtype::kFp8, gpu.fp8);
  h.memory_bandwidth = gpu.memory_bandwidth.value;
  h.l2 = gpu.l2 ? gpu.l2->value : Bytes{0};
  h.sm_count = gpu.sm_count.value;
  h.clock = gpu.boost_clock ? gpu.boost_clock->value
                            : (gpu.tensor_clock ? gpu.tensor_clock->value : Frequency::from_si(kTypicalClock));
  // CUDA cores: 128 fp32 FMA per clock and SM on every SM since Pascal's 64, where none is quoted.
  h.vector_fp32 = gpu.fp32 ? gpu.fp32->value
                           : FlopRate::from_si(256.0 * static_cast<double>(h.sm_count) * h.clock.si());
  return h;
}

// At the limit P ~ V^2 f, and V rises with f: f ~ P^(1/3), never beyond the boost clock.
double sustained_fraction(const topology::Gpu& gpu, const ClockProfile& clock, double measured) {
  if (!clock.power_per_sm) return measured;
  const double own = gpu.power_limit.value.si() / static_cast<double>(gpu.sm_count.value);
  return std::min(1.0, measured * std::cbrt(own / clock.power_per_sm->value.si()));
}

}  // namespace

gpu::GpuParameters with_attention(gpu::GpuParameters parameters, const topology::Gpu& gpu, AttentionGeneration generation) {
  if (generation == AttentionGeneration::kNewest) return parameters;
  // On an H100, head dimension 128, 16k: flash-2 370 and 335 (causal) TFLOP/s forward, flash-3 648 and 616 (Shah et al. 2024,
  // arXiv 2407.08608, figure 5); the abstract's 35 and 75 % of the peak are flash-2's usual and flash-3's best at 256. On
  // Ampere and before flash-2 is the newest there is. Flash-2 is "around 2x" flash-1 (Dao 2023, arXiv 2307.08691, abstract).
  constexpr double kFlash2OfFlash3 = (370.0 / 648.0 + 335.0 / 616.0) / 2.0;
  const bool has_flash3 = parse_number(gpu.architecture).value_or(0.0) >= 9.0;
  double factor = has_flash3 ? kFlash2OfFlash3 : 1.0;
  if (generation == AttentionGeneration::kFlash1) factor /= 2.0;
  parameters.attention.mma_efficiency *= factor;
  parameters.attention.backward_mma_efficiency *= factor;
  parameters.attention.scores_per_clock *= factor;
  return parameters;
}

gpu::GpuParameters make_parameters(const topology::Gpu& gpu, const Profile& profile, ClockRegime regime, Fp8Kernels fp8) {
  gpu::GpuParameters p;
  p.hardware = hardware(gpu);
  if (p.hardware.l2.count() == 0) p.hardware.l2 = Bytes{1};  // nothing stays in an L2 of unknown size
  const double clocks = p.hardware.clock.si() * static_cast<double>(p.hardware.sm_count);  // of all SMs [1/s]
  p.memory = {.streaming_efficiency = profile.memory.streaming_efficiency.value,
              .reduction_efficiency = profile.memory.reduction_efficiency.value,
              .l2_bandwidth = Bandwidth::from_si(profile.memory.l2_bytes_per_clock.value * clocks)};
  const GemmProfile& g = profile.gemm;
  p.gemm.standard = library(g.tiles, g.mma_efficiency.value);
  p.gemm.fp8 = fp8 == Fp8Kernels::kLibrary && g.fp8_library_mma_efficiency ? library(g.tiles, g.fp8_library_mma_efficiency->value)
                                                                          : library(g.fp8_tiles, g.fp8_mma_efficiency.value);
  if (p.gemm.standard.tiles.empty() || p.gemm.fp8.tiles.empty())
    throw UserError("profile " + profile.name + ": gemm: no tile fits in largest_area");
  p.gemm.memory_efficiency = g.memory_efficiency.value;
  p.gemm.operand_bandwidth = Bandwidth::from_si(g.operand_bytes_per_clock.value * clocks);
  p.gemm.sm_bandwidth = Bandwidth::from_si(g.sm_bytes_per_clock.value * p.hardware.clock.si());
  p.gemm.tile_overhead = g.tile_overhead.value;
  p.gemm.split_k_cost = g.split_k_cost.value;
  const AttentionProfile& a = profile.attention;
  p.attention = {.query_block = a.query_block.value,
                 .key_block = a.key_block.value,
                 .mma_efficiency = a.mma_efficiency.value,
                 .backward_mma_efficiency = a.backward_mma_efficiency.value,
                 .scores_per_clock = a.scores_per_clock.value,
                 .softmax_overlap = a.softmax_overlap.value,
                 .block_overhead = a.block_overhead.value,
                 .tail_share = a.tail_share ? a.tail_share->value : 0.0};
  p.kernel_latency = profile.overhead.kernel_latency.value;
  p.kernel_gap = profile.overhead.kernel_gap.value;
  p.host_launch = profile.overhead.host_launch.value;
  p.host_collective = profile.overhead.host_collective.value;
  if (profile.overhead.collective_wait) p.collective_wait = profile.overhead.collective_wait->value;
  if (profile.overhead.host_recompute) p.host_recompute = profile.overhead.host_recompute->value;
  if (profile.overhead.host_step) p.host_step = profile.overhead.host_step->value;
  p.context = profile.overhead.context.value;
  p.gemm_workspace = profile.overhead.gemm_workspace.value;
  if (regime == ClockRegime::kShortRun) return p;
  const ClockProfile& clock = profile.clock;
  const double sustained = sustained_fraction(gpu, clock, clock.sustained_fraction.value);
  p = gpu::at_clock(p, sustained);
  if (clock.attention_fraction) {
    const double beyond = sustained_fraction(gpu, clock, clock.attention_fraction->value) / sustained;
    p.attention.mma_efficiency *= beyond;
    p.attention.scores_per_clock *= beyond;
  }
  return p;
}

}  // namespace stepcast::calibration
