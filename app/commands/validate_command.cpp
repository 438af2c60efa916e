// `stepcast validate`: forecasts against what was measured: a scenario's own run, or tables of what others published.
#include <thread>

#include <fmt/format.h>

#include "app/commands/commands.hpp"
#include "app/commands/common_options.hpp"
#include "app/commands/validate_scenario.hpp"
#include "app/cli/share_text.hpp"
#include "app/scenario/hardware_shelf.hpp"
#include "app/validate/truth_table.hpp"
#include "calibration/kernel_tables.hpp"
#include "sim/base/diagnostic.hpp"

namespace stepcast::app {
namespace {

namespace po = boost::program_options;

OptionList validate_options() {
  OptionList options;
  options.add_options()
      ("kernels", po::value<std::string>()->value_name("FILE"),
       "table of single kernels (GEMM, attention or mixture of experts): error by GPU and number format")
      ("table", po::value<std::string>()->value_name("FILE"),
       "table of training runs, one scenario a row: measured, forecast and error of each, and the summary");
  options.add_options()
      ("fitted", "with --table: forecast with the profiles of its machines that were fitted to a part of its rows (calibration/profiles/machines), and tell apart the rows "
                 "that the fits saw")
      ("worse-than", po::value<std::string>()->value_name("SHARE"), "with --table: print only the rows that are off by that much and more, such as 30%, the worst first");
  add_scenario_validation_options(options);
  add_output_options(options);
  return options;
}

Status validate_kernels(const Invocation& invocation, const std::string& file, const HardwareShelf& shelf) {
  const calibration::KernelReport report =
      calibration::validate_kernels(file, calibration::find_in(shelf.catalogue), shelf.profiles);
  write_json(invocation, calibration::to_json(report));
  print_text(invocation, calibration::to_text(report));
  return Status::kDone;
}

Status validate_table(const Invocation& invocation, const std::string& file, const HardwareShelf& shelf) {
  std::optional<double> worse_than;
  if (const auto text = invocation.text("worse-than")) {
    worse_than = share_of(*text);
    if (!worse_than || *worse_than < 0.0) throw UserError(Diagnostic{.path = "--worse-than", .problem = "not a share", .expected = "a share of the measured time, such as 30%", .got = *text});
  }
  Progress progress{invocation.has("quiet")};
  const TableOptions options{.threads = std::thread::hardware_concurrency(), .fitted = invocation.has("fitted")};
  const std::vector<TruthOutcome> outcomes = forecast_table(file, shelf, options, [&](std::size_t done, std::size_t of) {
    progress.show(fmt::format("{} of {} rows", done, of));
  });
  write_json(invocation, truth_json(outcomes).dump(2) + "\n");
  print_text(invocation, truth_text(outcomes, worse_than));
  return Status::kDone;
}

Status validate(const Invocation& invocation, Session& session) {
  const auto kernels = invocation.text("kernels");
  const auto table = invocation.text("table");
  const bool scenario = !invocation.operands.empty();
  const int subjects = (kernels ? 1 : 0) + (table ? 1 : 0) + (scenario ? 1 : 0);
  if (subjects != 1) {
    throw UserError(Diagnostic{.path = "stepcast validate",
                               .problem = subjects > 1 ? "one scenario or table at a time" : "nothing to validate",
                               .expected = "SCENARIO.yaml --db FILE, --kernels FILE or --table FILE"});
  }
  for (const char* option : {"fitted", "worse-than"}) {
    if (invocation.has(option) && !table) throw UserError(Diagnostic{.path = std::string{"--"} + option, .problem = "is for a table of training runs", .expected = "stepcast validate --table FILE"});
  }
  if (scenario) return validate_scenario(invocation, session);
  for (const char* option : {"db", "run", "tolerance", "trace", "set", "profile", "seed", "no-fold"}) {
    if (invocation.has(option)) throw UserError(Diagnostic{.path = std::string{"--"} + option, .problem = "is for a scenario, not for tables", .expected = "stepcast validate SCENARIO.yaml --db FILE"});
  }
  const HardwareShelf shelf = load_shelf(session.data);
  return kernels ? validate_kernels(invocation, *kernels, shelf) : validate_table(invocation, *table, shelf);
}

}  // namespace

Command validate_command() {
  return {.name = "validate",
          .summary = "compare forecasts with measurements: a scenario with its own run, or published tables",
          .operands = {.usage = "[SCENARIO.yaml]", .min = 0, .max = 1},
          .details = "A scenario is forecast and set beside the latest measured run of it, or of the same plan, in the database: errors by class of "
                     "work, stream and phase, the instructions that are furthest apart, and the step. Runs of `stepcast run` are compared "
                     "instruction by instruction; an imported profile (--run) by class and order. Exits 1 when the step's error is over --tolerance. "
                     "Of a table it prints measured, forecast and error, then the summary. Rows that cannot be forecast are counted "
                     "as refused, with the reason.",
          .options = validate_options(),
          .run = validate};
}

}  // namespace stepcast::app
