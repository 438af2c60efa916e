// `stepcast validate`: forecasts against what others measured.
#include <thread>

#include <fmt/format.h>

#include "app/commands/commands.hpp"
#include "app/commands/common_options.hpp"
#include "app/hardware_shelf.hpp"
#include "app/truth_table.hpp"
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
  Progress progress{invocation.has("quiet")};
  const std::vector<TruthOutcome> outcomes =
      forecast_table(file, shelf, std::thread::hardware_concurrency(), [&](std::size_t done, std::size_t of) {
        progress.show(fmt::format("{} of {} rows", done, of));
      });
  write_json(invocation, truth_json(outcomes).dump(2) + "\n");
  print_text(invocation, truth_text(outcomes));
  return Status::kDone;
}

Status validate(const Invocation& invocation, Session& session) {
  const auto kernels = invocation.text("kernels");
  const auto table = invocation.text("table");
  if (kernels.has_value() == table.has_value()) {
    throw UserError(Diagnostic{.path = "stepcast validate",
                               .problem = kernels ? "one table at a time" : "nothing to validate",
                               .expected = "--kernels FILE or --table FILE"});
  }
  const HardwareShelf shelf = load_shelf(session.data);
  return kernels ? validate_kernels(invocation, *kernels, shelf) : validate_table(invocation, *table, shelf);
}

}  // namespace

Command validate_command() {
  return {.name = "validate",
          .summary = "compare forecasts with published measurements",
          .operands = {},
          .details = "Prints measured, forecast and error, then the summary. Rows that cannot be forecast are counted "
                     "as refused, with the reason.",
          .options = validate_options(),
          .run = validate};
}

}  // namespace stepcast::app
