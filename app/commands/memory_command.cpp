// `stepcast memory`: who holds how much of what, and whether it fits.
#include <fmt/format.h>

#include "app/commands/commands.hpp"
#include "app/commands/common_options.hpp"
#include "app/commands/memory_estimators.hpp"
#include "app/forecast/fit_changes.hpp"
#include "app/forecast/forecast_json.hpp"
#include "app/forecast/forecast_text.hpp"
#include "app/forecast/start_memory.hpp"
#include "app/scenario/model_choice.hpp"
#include "sim/base/diagnostic.hpp"
#include "sim/base/text.hpp"

namespace stepcast::app {
namespace {

OptionList memory_options() {
  OptionList options;
  add_scenario_options(options);
  add_estimator_options(options);
  add_output_options(options);
  return options;
}

nlohmann::ordered_json to_json(const Forecast& f) {
  nlohmann::ordered_json json;
  json["name"] = f.scenario.name;
  json["fits"] = f.fits();
  json["device_memory_bytes"] = f.device_memory.count();
  json["device_memory_peak_bytes"] = f.worst_memory().total.count();
  json["headroom_bytes"] = (f.device_memory - f.worst_memory().total).count();
  json["worst"] = describe_peak(f, f.worst_memory());
  json["stages"] = memory_json(f);
  return json;
}

nlohmann::ordered_json to_json(const std::vector<FitChange>& changes) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const FitChange& c : changes) {
    if (!c.fits) continue;
    list.push_back({{"change", c.title}, {"set", c.sets}, {"device_memory_peak_bytes", c.peak.count()}, {"step_time_s", c.step_time_s}, {"gpus_ratio", c.gpus}});
  }
  return list;
}

std::string verdict(const Forecast& f) {
  if (!f.fits()) return out_of_memory_text(f);
  return fmt::format("fits: {} is the fullest, with {} of {} left\n", describe_peak(f, f.worst_memory()),
                     human_bytes(f.device_memory - f.worst_memory().total), human_bytes(f.device_memory));
}

Status memory(const Invocation& invocation, Session& session) {
  if (invocation.has("estimator")) return run_estimator(invocation, session);
  if (invocation.operands.empty())
    throw UserError(Diagnostic{.where = {}, .path = "stepcast memory", .problem = "no scenario", .expected = "SCENARIO.yaml, or --estimator NAME", .got = "nothing", .hint = {}});
  const scenario::Loaded loaded = scenario::load_scenario(invocation.operands[0], assignments(invocation));
  const HardwareShelf shelf = load_shelf(session.data);
  const Setup setup = prepare(shelf, loaded);
  const Forecast f = forecast(setup, {});
  const std::vector<StartPeak> start = start_peaks(f, parallel::load_peaks(setup.shape, pick_strategy(loaded, setup.shape)));
  nlohmann::ordered_json json = to_json(f);
  json["start"] = to_json(start);
  std::string advice;
  if (!f.fits()) {
    const std::vector<FitChange> changes = changes_that_fit(shelf, invocation.operands[0], assignments(invocation), f);
    advice = "\n" + fit_changes_text(changes, f);
    json["would_fit"] = to_json(changes);
  }
  write_json(invocation, json_text(json));
  print_text(invocation, fmt::format("{}\n\nPeak device memory of one worker of each stage, in GiB\n{}\n{}\n{}{}",
                                     paint(session.terminal, Tone::kStrong, f.scenario.name),
                                     memory_text(f, session.terminal), start_text(start, f.device_memory), verdict(f), advice));
  return f.fits() ? Status::kDone : Status::kAnswerIsNo;
}

}  // namespace

Command memory_command() {
  return {.name = "memory",
          .summary = "peak memory of each worker by category, and whether it fits",
          .operands = {.usage = "[SCENARIO.yaml]", .min = 0, .max = 1},
          .details = "Peaks are read off the plan's buffers through a model of the caching allocator. Exits 1 when a "
                     "worker does not fit, naming the worker, the instruction and the largest categories, and forecasts the changes that would make it fit, with "
                     "what each costs in step time. With --estimator, the "
                     "formulas that others size a run by, beside it.",
          .options = memory_options(),
          .run = memory};
}

}  // namespace stepcast::app
