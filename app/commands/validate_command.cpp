// `stepcast validate`: forecasts against what others measured.
#include <fmt/format.h>

#include "app/commands/commands.hpp"
#include "app/commands/common_options.hpp"
#include "app/hardware_shelf.hpp"
#include "calibration/kernel_tables.hpp"
#include "sim/base/diagnostic.hpp"

namespace stepcast::app {
namespace {

namespace po = boost::program_options;

OptionList validate_options() {
  OptionList options;
  options.add_options()
      ("kernels", po::value<std::string>()->value_name("FILE"),
       "table of single kernels (GEMM, attention or mixture of experts): error by GPU and number format");
  add_output_options(options);
  return options;
}

Status validate(const Invocation& invocation, Session& session) {
  const auto kernels = invocation.text("kernels");
  if (!kernels) {
    throw UserError(Diagnostic{.path = "stepcast validate", .problem = "nothing to validate",
                               .expected = "--kernels FILE"});
  }
  const HardwareShelf shelf = load_shelf(session.data);
  const calibration::KernelReport report =
      calibration::validate_kernels(*kernels, calibration::find_in(shelf.catalogue), shelf.profiles);
  write_json(invocation, calibration::to_json(report));
  print_text(invocation, calibration::to_text(report));
  return Status::kDone;
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
