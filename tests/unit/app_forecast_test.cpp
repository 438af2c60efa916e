// Metrics, JSON and texts of a forecast built by hand: no simulation.
//   2 GPUs, step 2 s, 8 samples of 1000 tokens, 400 TFLOP a step, peak 200 TFLOP/s
//   => 4 samples/s, 4000 tokens/s, 2000 per GPU, 100 TFLOP/s/GPU, MFU 0.5
#include <doctest/doctest.h>

#include "app/forecast/forecast.hpp"
#include "app/forecast/forecast_json.hpp"
#include "app/forecast/forecast_text.hpp"

namespace {

using namespace stepcast;

constexpr Duration milliseconds(std::int64_t count) { return Duration::microseconds(count * 1000); }

app::Forecast forecast_by_hand() {
  app::Forecast f;
  f.scenario.name = "by-hand";
  f.scenario.batch.global = 8;
  f.plan.work = {8, 8000, Flops::from_si(400e12), "megatron"};
  plan::Program program;
  program.name = "stage 0 of 1";
  program.labels = {"attention.qkv"};
  program.instructions = {{.label = plan::LabelId{0u}, .layer = 3, .body = plan::Alloc{}}};
  f.plan.programs = {program};
  f.result.step = milliseconds(2000);
  f.result.breakdown.compute = milliseconds(1400);
  f.result.breakdown.host_wait = milliseconds(100);
  f.result.breakdown.exposed_dp = milliseconds(400);
  f.result.breakdown.optimizer = milliseconds(100);
  run::MemoryPeak peak;
  peak.total = Bytes{80} * (1 << 30);
  peak.by_category[static_cast<std::size_t>(plan::Category::kActivations)] = Bytes{60} * (1 << 30);
  f.result.memory = {peak};
  f.gpus = 2;
  f.peak = FlopRate::from_si(200e12);
  f.device_memory = Bytes{80} * (1 << 30);
  return f;
}

}  // namespace

TEST_SUITE_BEGIN("unit");

TEST_CASE("forecast: throughput, TFLOP/s and MFU by their definitions") {
  const auto json = app::forecast_json(forecast_by_hand());
  CHECK(json["step_time_s"] == 2.0);
  CHECK(json["samples_per_s"] == 4.0);
  CHECK(json["tokens_per_s"] == 4000.0);
  CHECK(json["tokens_per_s_per_gpu"] == 2000.0);
  CHECK(json["tflops_per_gpu"].get<double>() == doctest::Approx(100.0));
  CHECK(json["mfu"].get<double>() == doctest::Approx(0.5));
}

TEST_CASE("forecast: the breakdown adds up and undetermined values are null") {
  const auto json = app::forecast_json(forecast_by_hand());
  double sum = 0.0;
  for (const auto& [key, value] : json["breakdown_s"].items()) sum += value.is_null() ? 0.0 : value.get<double>();
  CHECK(sum == doctest::Approx(2.0).epsilon(1e-12));
  CHECK(json["breakdown_s"]["input_wait"].is_null());  // the plan loads no batch
  CHECK(json["energy_per_step_j"].is_null());
  CHECK(json["cost"]["per_step"].is_null());
  CHECK(json["host_wait_s"] == 0.1);
}

TEST_CASE("forecast: exactly full fits, one byte more does not") {
  app::Forecast f = forecast_by_hand();
  CHECK(f.fits());
  CHECK(app::out_of_memory_text(f).empty());
  f.result.memory[0].total += Bytes{1};
  CHECK_FALSE(f.fits());
  const std::string text = app::out_of_memory_text(f);
  CHECK(text.find("attention.qkv") != std::string::npos);
  CHECK(text.find("layer 3") != std::string::npos);
  CHECK(text.find("activations 60.0 GiB") != std::string::npos);
}

TEST_CASE("forecast: the bottleneck names the largest wait and a way out") {
  app::Forecast f = forecast_by_hand();
  CHECK(app::bottleneck_sentence(f) ==
        "compute takes 75 % of the step, exposed data-parallel communication 20 %; a faster network, a larger global "
        "batch per step or a smaller dp would help");
  f.scenario.parallel.overlap_grad_reduce = false;
  CHECK(app::bottleneck_sentence(f).ends_with("overlap_grad_reduce would hide it behind the backward pass"));
}

TEST_CASE("forecast: plain output has neither escapes nor box characters") {
  const std::string text = app::summary_text(forecast_by_hand(), app::Terminal{});
  for (const char c : text) CHECK((c == '\n' || (c >= ' ' && c < 127)));
}

TEST_SUITE_END();
