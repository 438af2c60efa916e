#include "calibration/kernel_forecast.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "calibration/gpu_parameters.hpp"
#include "models/gpu/gemm.hpp"
#include "models/gpu/memory_bound.hpp"

namespace stepcast::calibration {

namespace {

constexpr double kCallsInARow = 12;
constexpr double kWeightCopies = 6;

double fixed_seconds(const gpu::GpuModel& model) {
  return model.parameters().kernel_latency.seconds() + model.kernel_gap().seconds();
}

double time_of(const gpu::GpuModel& model, const plan::Kernel& kernel) {
  return model.time(kernel).seconds() + model.kernel_gap().seconds();
}

Bytes bytes(std::int64_t elements, std::int64_t element) { return Bytes{elements} * element; }

// (2): a memory whose share is as fast as L2.
gpu::GpuModel with_hot_operands(const gpu::GpuModel& model, double footprint) {
  gpu::GpuParameters p = model.parameters();
  const double hot = std::clamp(4.0 * (1.0 - footprint / p.hardware.l2.si()), 0.0, 1.0);
  const double memory = p.hardware.memory_bandwidth.si();
  const double cache = std::max(memory, p.memory.l2_bandwidth.si() / p.gemm.memory_efficiency);
  p.hardware.memory_bandwidth = Bandwidth::from_si(1.0 / (hot / cache + (1.0 - hot) / memory));
  return gpu::GpuModel{std::move(p)};
}

bool any_hot(const gpu::GpuModel& model, double footprint) { return footprint < model.parameters().hardware.l2.si(); }

// The GPU with other attention kernels: all of a kernel's work at another rate.
gpu::GpuParameters with_attention_rate(gpu::GpuParameters p, double rate) {
  p.attention.mma_efficiency *= rate;
  p.attention.scores_per_clock *= rate;
  return p;
}

}  // namespace

KernelForecast::KernelForecast(const topology::Gpu& gpu, const Profile& profile)
    : gpu_{gpu::GpuModel{make_parameters(gpu, profile, ClockRegime::kShortRun, Fp8Kernels::kServing)},
           gpu::GpuModel{make_parameters(gpu, profile, ClockRegime::kSustained, Fp8Kernels::kServing)}},
      power_response_s_{profile.clock.power_response.value.seconds()} {
  const AttentionProfile& a = profile.attention;
  if (a.engine_overhead) engine_.overhead_s = a.engine_overhead->value.seconds();
  if (a.cache_efficiency) engine_.cache_efficiency = a.cache_efficiency->value;
  vllm_ = engine_;
  if (a.vllm_overhead) vllm_.overhead_s = a.vllm_overhead->value.seconds();
  if (a.vllm_cache_efficiency) vllm_.cache_efficiency = a.vllm_cache_efficiency->value;
  if (a.vllm_rate) {
    vllm_gpu_ = Clocks{gpu::GpuModel{with_attention_rate(gpu_.short_run.parameters(), a.vllm_rate->value)},
                       gpu::GpuModel{with_attention_rate(gpu_.sustained.parameters(), a.vllm_rate->value)}};
  }
}

template <class Seconds>
double KernelForecast::measured(const Clocks& gpu, Seconds seconds) const {
  const double boost = seconds(gpu.short_run);
  const double run = kCallsInARow * boost;
  return boost + (seconds(gpu.sustained) - boost) * run / (run + power_response_s_);
}

double KernelForecast::gemm_seconds(std::int64_t m, std::int64_t n, std::int64_t k, plan::Dtype dtype) const {
  plan::Kernel kernel{.op = plan::OpClass::kGemm, .dtype = dtype};
  kernel.gemm = plan::GemmShape{1, m, n, k};
  kernel.read = bytes(m * k + k * n, plan::element_bytes(dtype));
  kernel.written = bytes(m * n, std::max<std::int64_t>(2, plan::element_bytes(dtype)));
  // Activations come in 16 bit and are quantised in front, each row with its scale.
  const double quantised = dtype == plan::Dtype::kFp8 ? static_cast<double>(m * k) : 0.0;
  const double footprint = kWeightCopies * bytes(n * k, plan::element_bytes(dtype)).si() + bytes(m * k, plan::element_bytes(dtype)).si() + kernel.written.si();
  return measured(gpu_, [&](const gpu::GpuModel& model) {
    const double cast = quantised > 0 ? fixed_seconds(model) + gpu::quantize_seconds(model.parameters(), quantised) : 0.0;
    return cast + (any_hot(model, footprint) ? time_of(with_hot_operands(model, footprint), kernel) : time_of(model, kernel));
  });
}

double KernelForecast::attention_seconds(const AttentionCase& c, plan::Dtype dtype) const {
  const std::int64_t element = plan::element_bytes(dtype);
  const std::int64_t queries = c.batch * c.sequence * c.query_heads * c.head_dim;
  const std::int64_t keys = c.batch * c.sequence * c.kv_heads * c.head_dim;
  plan::Kernel attend{.op = plan::OpClass::kAttention, .dtype = dtype};
  attend.attention = plan::AttentionShape{c.batch,    c.query_heads, c.kv_heads, c.sequence, c.sequence,
                                          c.head_dim, c.head_dim,    true,       {}};
  attend.read = bytes(queries + 2 * keys, element);
  attend.written = bytes(queries, 2);
  // Keys, then values, copied into the cache.
  plan::Kernel cache{.op = plan::OpClass::kElementwise, .dtype = dtype};
  cache.read = bytes(keys, 2);
  cache.written = bytes(keys, element);
  const Engine& engine = c.vllm ? vllm_ : engine_;
  return measured(c.vllm && vllm_gpu_ ? *vllm_gpu_ : gpu_, [&](const gpu::GpuModel& model) {
    const double fixed = engine.overhead_s ? *engine.overhead_s : 2 * fixed_seconds(model);
    const double around = 2 * gpu::memory_bound_seconds(model.parameters(), cache) / engine.cache_efficiency + fixed;
    return time_of(model, attend) + around;
  });
}

std::vector<std::int64_t> expert_loads(const MoeCase& c) {
  const std::int64_t local = std::max<std::int64_t>(1, c.experts / c.expert_parallel);
  const double all = static_cast<double>(c.tokens * c.top_k);
  std::vector<std::int64_t> loads;
  if (c.power_law <= 0) {
    const double share = all / static_cast<double>(c.experts);
    // Fewer assignments than experts: some experts have one token, the others none.
    const std::int64_t busy = std::min(local, static_cast<std::int64_t>(std::ceil(share * static_cast<double>(local))));
    for (std::int64_t i = 0; i < busy; ++i) loads.push_back(static_cast<std::int64_t>(std::ceil(share)));
    return loads;
  }
  const double exponent = 1.0 - c.power_law;
  const bool sparse = all <= static_cast<double>(c.experts);
  const double low = sparse ? 0.01 : 1.0;
  const double high = sparse ? 2.0 : 0.8 * static_cast<double>(c.tokens);
  std::vector<double> weights;
  double sum = 0;
  for (std::int64_t i = 0; i < c.experts; ++i) {
    const double u = (static_cast<double>(c.experts - i) - 0.5) / static_cast<double>(c.experts);
    weights.push_back(std::pow((std::pow(high, exponent) - std::pow(low, exponent)) * u + std::pow(low, exponent),
                               1.0 / exponent));
    sum += weights.back();
  }
  for (std::int64_t i = 0; i < local; ++i) {
    const double share = weights[static_cast<std::size_t>(i * c.expert_parallel)] / sum * all;
    const std::int64_t load = std::min(c.tokens, static_cast<std::int64_t>(std::llround(share)));
    if (load > 0) loads.push_back(load);
  }
  return loads;
}

double KernelForecast::moe_seconds(const MoeCase& c, plan::Dtype dtype) const {
  const std::vector<std::int64_t> loads = expert_loads(c);
  std::vector<gpu::RowGroup> groups;
  std::int64_t rows = 0;
  for (const std::int64_t load : loads) {
    groups.push_back({.count = 1, .rows = load});
    rows += load;
  }
  const std::int64_t inter = std::max<std::int64_t>(1, c.intermediate / c.tensor_parallel);
  const std::int64_t up = (c.gated ? 2 : 1) * inter;
  const auto r = static_cast<double>(rows);
  const auto choices = static_cast<double>(c.tokens * c.top_k);  // rows of the buffers: other ranks' stay empty
  return measured(gpu_, [&](const gpu::GpuModel& model) {
    const gpu::GpuParameters& p = model.parameters();
    const auto grouped = [&](std::int64_t n, std::int64_t k) {
      return gpu::plan_grouped_gemm(p, groups, n, k, dtype, 2.0 * r * static_cast<double>(n)).seconds;
    };
    const auto moved = [&](double elements) {
      return gpu::memory_seconds(p, 2.0 * elements, p.memory.streaming_efficiency);
    };
    // Sort tokens by expert (2 kernels) and gather; up, activation, down; weighted sum over the k choices.
    double seconds = 7 * fixed_seconds(model) + moved(2 * r * static_cast<double>(c.hidden));
    seconds += grouped(up, c.hidden) + moved(choices * static_cast<double>(up + inter)) + grouped(c.hidden, inter);
    seconds += moved((choices + static_cast<double>(c.tokens)) * static_cast<double>(c.hidden));
    if (dtype == plan::Dtype::kFp8)
      seconds += 2 * fixed_seconds(model) + gpu::quantize_seconds(p, r * static_cast<double>(c.hidden + inter));
    return seconds;
  });
}

}  // namespace stepcast::calibration
