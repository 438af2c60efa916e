// Figures of a profile out of times that the model itself made with others.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "calibration/kernel_fit.hpp"
#include "calibration/profile_parameters.hpp"
#include "sim/scenario/read.hpp"
#include "sim/scenario/write.hpp"
#include "tests/support/gpu_profile_fixture.hpp"

using namespace stepcast;
using namespace stepcast::calibration;
using namespace stepcast::calibration::testing;

TEST_SUITE_BEGIN("unit");

namespace {

KernelRow row_of(std::vector<std::int64_t> shape) { return {.gpu = "round-gpu", .dtype = "bf16", .shape = std::move(shape), .power_law = 0, .gated = true, .seconds = 1}; }

KernelRows products() {
  KernelRows table{.kind = KernelKind::kGemm, .rows = {}};
  for (const std::int64_t m : {128, 512, 1024, 4096, 8192})
    for (const std::int64_t n : {256, 640, 2048, 8192})
      for (const std::int64_t k : {512, 1024, 4096, 16384}) table.rows.push_back(row_of({m, n, k}));
  return table;
}

KernelRows attention() {
  KernelRows table{.kind = KernelKind::kAttention, .rows = {}};
  for (const std::int64_t batch : {1, 4})
    for (const std::int64_t heads : {2, 8, 32})
      for (const std::int64_t length : {512, 1024, 2048, 4096, 8192})
        for (const std::int64_t dim : {64, 128, 256}) table.rows.push_back(row_of({batch, heads, heads, dim, length}));
  return table;
}

// What is to be found, some way off what the search begins from.
Profile truth() {
  Profile p = round_profile();
  set_parameter(p, "gemm.mma_efficiency", 0.62);
  set_parameter(p, "gemm.memory_efficiency", 0.7);
  set_parameter(p, "gemm.tile_overhead", 1.2e-6);
  set_parameter(p, "gemm.split_k_cost", 3e-6);
  set_parameter(p, "overhead.kernel_latency", 1.6e-6);
  set_parameter(p, "attention.mma_efficiency", 0.6);
  set_parameter(p, "attention.scores_per_clock", 1.5);  // softmax is the longer part at 64 a head, products at 128: both show
  set_parameter(p, "attention.softmax_overlap", 0.8);
  set_parameter(p, "attention.block_overhead", 2e-6);
  p.attention.tail_share = Figure<double>{0.4, topology::Basis::kAssumed, "test"};
  p.attention.engine_overhead = Figure<Duration>{Duration::microseconds(9), topology::Basis::kAssumed, "test"};
  p.attention.cache_efficiency = Figure<double>{0.7, topology::Basis::kAssumed, "test"};
  p.clock.attention_fraction = Figure<double>{p.clock.sustained_fraction.value, topology::Basis::kAssumed, "test"};
  return p;
}

Profile start() {
  Profile p = round_profile();
  set_parameter(p, "gemm.tile_overhead", 2e-6);
  set_parameter(p, "gemm.split_k_cost", 2e-6);
  set_parameter(p, "attention.block_overhead", 1e-6);
  set_parameter(p, "attention.scores_per_clock", 2.5);
  return p;
}

std::vector<KernelPoint> measured(const Profile& profile, const std::vector<KernelRows>& tables) {
  const KernelForecast model{round_gpu_entry(), profile};
  std::vector<KernelPoint> points;
  for (const KernelRows& table : tables) {
    for (KernelPoint& p : points_of(table, model)) {
      p.measured_s = p.forecast_s(model);
      points.push_back(std::move(p));
    }
  }
  return points;
}

const FittedFigure& figure(const KernelFit& fit, const std::string& key) {
  const auto found = std::find_if(fit.figures.begin(), fit.figures.end(), [&](const FittedFigure& f) { return f.key == key; });
  REQUIRE_MESSAGE(found != fit.figures.end(), key);
  return *found;
}

// 5 % noise, and 5 % of the points off by a factor of 1.5 to 4.
void disturb(std::vector<KernelPoint>& points, unsigned seed) {
  std::mt19937 random{seed};
  std::normal_distribution<double> noise{0.0, 0.05};
  std::uniform_real_distribution<double> uniform{0.0, 1.0};
  for (KernelPoint& p : points) {
    p.measured_s *= std::exp(noise(random));
    if (uniform(random) < 0.05) p.measured_s *= std::exp((uniform(random) < 0.5 ? -1.0 : 1.0) * (std::log(1.5) + uniform(random) * std::log(4.0 / 1.5)));
  }
}

// Of `seeds`, how often each told figure is within two of its stated deviations.
std::map<std::string, std::pair<int, int>> recovery(unsigned seeds, const std::vector<KernelRows>& tables) {
  const Profile wanted = truth();
  const std::vector<KernelPoint> exact = measured(wanted, tables);
  std::map<std::string, std::pair<int, int>> found;
  for (unsigned seed = 0; seed < seeds; ++seed) {
    std::vector<KernelPoint> points = exact;
    disturb(points, seed);
    for (const FittedFigure& f : fit_kernels(points, round_gpu_entry(), start(), {}).figures) {
      REQUIRE(parameter_value(wanted, f.key).has_value());
      auto& [within, all] = found[f.key];
      ++all;
      within += std::abs(f.value - *parameter_value(wanted, f.key)) <= 2.0 * f.plus_minus ? 1 : 0;
    }
  }
  return found;
}

}  // namespace

TEST_CASE("kernel fit: exact times give the figures that made them") {
  const Profile wanted = truth();
  const KernelFit fit = fit_kernels(measured(wanted, {products(), attention()}), round_gpu_entry(), start(), {.source = "test", .date = "2026-11-30"});
  for (const auto& [part, errors] : fit.fitted) {
    CAPTURE(name_of(part));
    CHECK(errors.median < 0.005);
  }
  for (const char* key : {"gemm.mma_efficiency", "overhead.kernel_latency", "attention.mma_efficiency", "attention.scores_per_clock"}) {
    CAPTURE(key);
    CHECK(figure(fit, key).value == doctest::Approx(*parameter_value(wanted, key)).epsilon(0.03));
  }
  CHECK(fit.profile.gemm.mma_efficiency.basis == topology::Basis::kMeasured);
  CHECK(fit.profile.gemm.mma_efficiency.date == "2026-11-30");
  CHECK(fit.profile.gemm.mma_efficiency.plus_minus.has_value());
  CHECK(fit.profile.memory.streaming_efficiency.basis == topology::Basis::kAssumed);  // no stream was timed
}

TEST_CASE("kernel fit: the fitted profile is written and reads back alike") {
  Profile fitted = fit_kernels(measured(truth(), {products()}), round_gpu_entry(), start(), {.source = "a, b: {c}", .date = "2026-11-30"}).profile;
  detail::for_each_figure(fitted, [](const std::string&, auto& f, const scenario::Rule&) {
    if (f.source.empty()) f.source = "test";
  });
  const std::string text = scenario::print_effective(fitted);
  CHECK(text.find("mma_efficiency: {value: ") != std::string::npos);
  CHECK(scenario::print_effective(scenario::read_yaml_text<Profile>(text, "p.yaml")) == text);
}

TEST_CASE("kernel fit: one point, and points all of one shape, leave what they do not tell") {
  for (const std::size_t copies : {std::size_t{1}, std::size_t{12}}) {
    CAPTURE(copies);
    const KernelRows one{.kind = KernelKind::kGemm, .rows = std::vector<KernelRow>(copies, row_of({8192, 8192, 16384}))};
    KernelFit fit = fit_kernels(measured(truth(), {one}), round_gpu_entry(), start(), {});
    CHECK(fit.profile.overhead.kernel_latency.value == start().overhead.kernel_latency.value);
    CHECK(fit.profile.gemm.tile_overhead.value == start().gemm.tile_overhead.value);
    const std::vector<KernelPoint> points = measured(truth(), {one});
    const HeldOut held = hold_out(points, round_gpu_entry(), start(), 5, {}, fit);  // equal shapes are one fold: none can be held out
    CHECK(held.folds.empty());
    CHECK(held.larger_half.empty());
  }
}

// vLLM calls kernels and a cache of its own: the same shapes, timed through both, tell both.
TEST_CASE("kernel fit: attention through two engines") {
  Profile wanted = truth();
  wanted.attention.vllm_rate = Figure<double>{0.85, topology::Basis::kAssumed, "test"};
  wanted.attention.vllm_overhead = Figure<Duration>{Duration::microseconds(4), topology::Basis::kAssumed, "test"};
  wanted.attention.vllm_cache_efficiency = Figure<double>{0.3, topology::Basis::kAssumed, "test"};
  KernelRows both = attention();
  for (const KernelRow& row : attention().rows) {
    both.rows.push_back(row);
    both.rows.back().vllm = true;
  }
  const KernelFit fit = fit_kernels(measured(wanted, {products(), both}), round_gpu_entry(), start(), {.source = "test"});
  CHECK(fit.fitted.at(KernelPart::kAttention).median < 0.005);
  CHECK(figure(fit, "attention.vllm_rate").value == doctest::Approx(0.85).epsilon(0.03));
  CHECK(figure(fit, "attention.vllm_cache_efficiency").value == doctest::Approx(0.3).epsilon(0.05));
  CHECK(fit.profile.attention.vllm_overhead->value.seconds() == doctest::Approx(4e-6).epsilon(0.05));
  // One engine's rows tell nothing of the other.
  const KernelFit one = fit_kernels(measured(wanted, {attention()}), round_gpu_entry(), start(), {});
  CHECK_FALSE(one.profile.attention.vllm_rate.has_value());
}

TEST_CASE("kernel fit: kept figures stay, and a start replaces the profile's own figures that the points tell of") {
  const std::vector<KernelPoint> points = measured(truth(), {products()});
  const KernelFit kept = fit_kernels(points, round_gpu_entry(), start(), {.kept = {"gemm.mma_efficiency"}});
  CHECK(kept.profile.gemm.mma_efficiency.value == start().gemm.mma_efficiency.value);
  Profile moved = start();
  moved.name = "moved";
  set_parameter(moved, "gemm.tile_overhead", 3e-6);
  set_parameter(moved, "attention.block_overhead", 9e-6);
  const Profile begun = beginning_at(truth(), moved, points, {.kept = {"gemm.split_k_cost"}});
  CHECK(begun.gemm.tile_overhead.value == moved.gemm.tile_overhead.value);
  CHECK(begun.gemm.tile_overhead.source.find("moved") != std::string::npos);
  CHECK(begun.gemm.split_k_cost.value == truth().gemm.split_k_cost.value);          // kept
  CHECK(begun.attention.block_overhead.value == truth().attention.block_overhead.value);  // products do not tell it
  CHECK(begun.attention.tail_share.has_value());
  // The same fit, whatever the profile held before.
  const KernelFit a = fit_kernels(points, round_gpu_entry(), beginning_at(truth(), moved, points, {}), {});
  const KernelFit b = fit_kernels(points, round_gpu_entry(), beginning_at(start(), moved, points, {}), {});
  CHECK(a.profile.gemm.mma_efficiency.value == b.profile.gemm.mma_efficiency.value);
  CHECK(a.profile.overhead.kernel_latency.value == b.profile.overhead.kernel_latency.value);
}

TEST_CASE("kernel fit: held-out errors of exact times are small, the larger half's too") {
  const std::vector<KernelPoint> points = measured(truth(), {products()});
  KernelFit fit = fit_kernels(points, round_gpu_entry(), start(), {});
  const HeldOut held = hold_out(points, round_gpu_entry(), start(), 4, {}, fit);
  CHECK(held.folds.at(KernelPart::kProducts).n == points.size());
  CHECK(held.folds.at(KernelPart::kProducts).median < 0.02);
  CHECK(held.larger_half.at(KernelPart::kProducts).median < 0.05);
}

// The whole statement, 90 of 100 seeds, is the slow test below.
TEST_CASE("kernel fit: figures are recovered within their stated intervals, ten seeds") {
  for (const auto& [key, count] : recovery(10, {attention()})) {
    CAPTURE(key);
    CHECK(count.first >= 8);
  }
}

TEST_SUITE_END();
TEST_SUITE_BEGIN("slow");

// Must-show 1 of the calibration on the GPU model itself: products and attention.
TEST_CASE("kernel fit: figures are recovered within their stated intervals in 90 of 100 seeds") {
  for (const auto& [key, count] : recovery(100, {products(), attention()})) {
    MESSAGE(key << ": " << count.first << " of " << count.second);
    CAPTURE(key);
    CHECK(count.second == 100);
    CHECK(count.first >= 90);
  }
}
