// `stepcast compare`: variants of one file, or several files, side by side.
#include <fmt/format.h>

#include "app/commands/commands.hpp"
#include "app/commands/common_options.hpp"
#include "app/forecast/comparison.hpp"
#include "app/forecast/forecast_json.hpp"
#include "sim/base/diagnostic.hpp"

namespace stepcast::app {
namespace {

OptionList compare_options() {
  OptionList options;
  add_scenario_options(options);
  add_simulation_options(options);
  add_output_options(options);
  return options;
}

std::vector<scenario::Loaded> load_all(const Invocation& invocation) {
  std::vector<scenario::Loaded> all;
  for (const std::string& file : invocation.operands) {
    for (scenario::Loaded& loaded : scenario::load_variants(file, assignments(invocation))) {
      all.push_back(std::move(loaded));
    }
  }
  if (all.size() < 2) {
    throw UserError(Diagnostic{.where = {invocation.operands[0], 0, 0}, .problem = "nothing to compare with",
                               .expected = "variants: in the file, or several files"});
  }
  return all;
}

Status compare(const Invocation& invocation, Session& session) {
  const HardwareShelf shelf = load_shelf(session.data);
  const bool one_file = invocation.operands.size() == 1;
  std::vector<Setup> setups;
  std::vector<std::string> names;
  for (const scenario::Loaded& loaded : load_all(invocation)) {
    setups.push_back(prepare(shelf, loaded));  // all are checked before the first is simulated
    names.push_back(one_file && !loaded.variant.empty() ? loaded.variant : loaded.scenario.name);
  }
  std::vector<Forecast> forecasts;
  {
    Progress progress{invocation.has("quiet")};
    for (const Setup& setup : setups) {
      progress.show(fmt::format("simulating {} of {}: {}", forecasts.size() + 1, setups.size(), setup.scenario.name));
      forecasts.push_back(forecast(setup, {.fold = !invocation.has("no-fold")}));
    }
  }
  nlohmann::ordered_json json;
  std::vector<scenario::Scenario> scenarios;
  for (const Forecast& f : forecasts) {
    json["forecasts"].push_back(forecast_json(f));
    scenarios.push_back(f.scenario);
  }
  for (const InputDifference& difference : differing_inputs(scenarios)) {
    json["inputs_that_differ"][difference.key] = difference.values;
  }
  json["explanation"] = explain(forecasts, names);
  write_json(invocation, json_text(json));
  print_text(invocation, comparison_text(forecasts, names, session.terminal));
  return Status::kDone;
}

}  // namespace

Command compare_command() {
  return {.name = "compare",
          .summary = "several scenarios side by side, and why they differ",
          .operands = {.usage = "SCENARIO.yaml...", .min = 1, .max = Operands::kAny},
          .details = "One file: its variants. Several files: each of them. Prints the inputs that differ, the "
                     "results, where each step goes, and what makes each slower than the fastest.",
          .options = compare_options(),
          .run = compare};
}

}  // namespace stepcast::app
