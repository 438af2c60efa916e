#include "app/forecast/forecast_store.hpp"

#include <array>
#include <ctime>

#include "app/cli/command_line.hpp"
#include "app/forecast/forecast_json.hpp"
#include "sim/plan/names.hpp"
#include "sim/scenario/write.hpp"

namespace stepcast::app {
namespace {

std::vector<trace::Metric> metrics_of(const Forecast& f) {
  return {{"step_time", f.step_time_s(), "s"},
          {"samples_per_s", f.samples_per_s(), "1/s"},
          {"tokens_per_s", f.tokens_per_s(), "1/s"},
          {"tflops_per_gpu", f.tflops_per_gpu(), "TFLOP/s"},
          {"mfu", f.mfu(), "1"},
          {"device_memory_peak", f.worst_memory().total.si(), "B"},
          {"energy_per_step", std::nullopt, "J"},
          {"average_clock", std::nullopt, "Hz"}};
}

std::vector<trace::MemoryPart> memory_of(const Forecast& f) {
  std::vector<trace::MemoryPart> parts;
  for (const run::MemoryPeak& peak : f.result.memory) {
    const auto add = [&](const char* category, Bytes bytes) {
      parts.push_back({peak.worker, "device", category, bytes.count()});
    };
    for (int c = 0; c < plan::kCategoryCount; ++c) {
      add(plan::name_of(static_cast<plan::Category>(c)), peak.by_category[static_cast<std::size_t>(c)]);
    }
    add("context", peak.context);
    add("communicators", peak.communicators);
    add("fragmentation", peak.fragmentation);
  }
  return parts;
}

}  // namespace

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text.data();
}

trace::Run stored_run(const Forecast& forecast) {
  trace::Run run;
  run.name = forecast.scenario.name;
  run.origin = "simulated";
  run.scenario = scenario::print_effective(forecast.scenario);
  run.version = version();
  run.seed = static_cast<std::uint64_t>(forecast.scenario.seed);
  run.created = utc_now();
  run.results = forecast_json(forecast).dump();
  run.metrics = metrics_of(forecast);
  for (const StepPart& part : step_parts(forecast)) {
    if (part.determined) run.breakdown.push_back({part.key, part.time});
  }
  run.memory = memory_of(forecast);
  run.recording = forecast.result.recording;
  return run;
}

}  // namespace stepcast::app
