// `stepcast simulate`: one scenario, one forecast.
#include <algorithm>

#include <fmt/format.h>

#include "app/commands/commands.hpp"
#include "app/commands/common_options.hpp"
#include "app/forecast/forecast_json.hpp"
#include "app/forecast/forecast_store.hpp"
#include "app/forecast/forecast_text.hpp"
#include "app/forecast/uncertainty.hpp"
#include "sim/base/diagnostic.hpp"
#include "sim/base/file.hpp"
#include "sim/scenario/write.hpp"
#include "sim/trace/perfetto.hpp"

namespace stepcast::app {
namespace {

namespace po = boost::program_options;

constexpr std::int64_t kUsualTraceWorkers = 4;

OptionList simulate_options() {
  OptionList options;
  add_scenario_options(options);
  add_simulation_options(options);
  add_output_options(options);
  options.add_options()
      ("trace", po::value<std::string>()->value_name("FILE"), "write a timeline for ui.perfetto.dev")
      ("trace-workers", po::value<std::int64_t>()->value_name("N"),
       "workers in the timeline (default 4; the first of each pipeline stage come first)")
      ("db", po::value<std::string>()->value_name("FILE"), "append the results to a SQLite store")
      ("uncertainty", "how far the figures behind the forecast may move the step time, even where that takes many simulations")
      ("no-uncertainty", "one simulation only")
      ("print-scenario", "print the effective scenario, defaults and overrides applied, and stop");
  return options;
}

std::size_t trace_workers(const Invocation& invocation) {
  const std::int64_t wanted = invocation.integer("trace-workers").value_or(kUsualTraceWorkers);
  if (wanted < 1) {
    throw UserError(Diagnostic{.path = "stepcast simulate", .problem = "--trace-workers is less than one",
                               .expected = "1 or more", .got = std::to_string(wanted)});
  }
  return invocation.has("trace") || invocation.has("db") ? static_cast<std::size_t>(wanted) : 0;
}

void check_outputs(const Invocation& invocation) {
  if (invocation.text("json") != "-" || invocation.text("trace") != "-") return;
  throw UserError(Diagnostic{.path = "stepcast simulate", .problem = "two outputs on standard output",
                             .expected = "- for one of --json, --trace"});
}

Status simulate(const Invocation& invocation, Session& session) {
  check_outputs(invocation);
  const scenario::Loaded loaded = scenario::load_scenario(invocation.operands[0], assignments(invocation));
  if (invocation.has("print-scenario")) {
    write_file("-", scenario::print_effective(loaded.scenario));
    return Status::kDone;
  }
  const HardwareShelf shelf = load_shelf(session.data);
  const Setup setup = prepare(shelf, loaded);
  const bool fold = !invocation.has("no-fold");
  const Forecast result = [&] {
    Progress progress{invocation.has("quiet")};
    progress.show(fmt::format("simulating {} workers", setup.plan.world_size()));
    Forecast f = forecast(setup, {.fold = fold, .trace_workers = trace_workers(invocation)});
    if (invocation.has("no-uncertainty")) return f;
    if (!invocation.has("uncertainty") && f.result.events > kUnaskedEvents) {
      f.notes.emplace_back("how far the figures behind it may move the step was not computed: --uncertainty asks for it");
      return f;
    }
    progress.show("moving the figures behind the forecast");
    f.uncertainty = propagate(shelf, loaded, setup, f.result.step, {.fold = fold});
    return f;
  }();
  const std::string json = json_text(forecast_json(result));
  write_json(invocation, json);
  if (const auto file = invocation.text("trace")) trace::save_perfetto(result.result.recording, *file);
  if (const auto file = invocation.text("db")) trace::append_run(*file, stored_run(result));
  print_text(invocation, summary_text(result, session.terminal));
  if (result.fits()) return Status::kDone;
  print_text(invocation, '\n' + out_of_memory_text(result));
  return Status::kAnswerIsNo;
}

}  // namespace

Command simulate_command() {
  return {.name = "simulate",
          .summary = "forecast the training step of a scenario",
          .operands = {.usage = "SCENARIO.yaml", .min = 1, .max = 1},
          .details = "Prints step time, throughput, MFU, peak memory, where the step goes and what bounds it. "
                     "Exits 1 when the model does not fit in the GPUs' memory; the forecast is printed all the same.",
          .options = simulate_options(),
          .run = simulate};
}

}  // namespace stepcast::app
