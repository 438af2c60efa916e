#include "app/commands/import_measurements.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "app/forecast/forecast_json.hpp"
#include "app/measure/imported_run.hpp"
#include "calibration/byte_stream.hpp"
#include "calibration/kineto_trace.hpp"
#include "calibration/nsys_trace.hpp"
#include "calibration/smi_log.hpp"
#include "sim/base/diagnostic.hpp"
#include "sim/base/file.hpp"
#include "sim/base/text.hpp"

namespace stepcast::app {
namespace {

namespace po = boost::program_options;

constexpr std::size_t kMostLogBytes = std::size_t{1} << 30U;  // a month of eight GPUs at 1 s is half of it

calibration::SmiOptions smi_options(const Invocation& invocation) {
  calibration::SmiOptions options;
  if (const auto columns = invocation.text("columns")) {
    for (const std::string& column : split(*columns, ',')) options.columns.emplace_back(trim(column));
  }
  if (const auto interval = invocation.text("interval")) {
    const auto seconds = parse_number(*interval);
    if (!seconds || *seconds <= 0.0 || *seconds > 86400.0) {
      throw UserError(Diagnostic{.path = "--interval", .problem = "no time between samples", .expected = "seconds, above 0 and up to 86400", .got = *interval});
    }
    options.interval_s = *seconds;
  }
  return options;
}

Status import_smi(const std::string& file, const Invocation& invocation) {
  const calibration::SmiLog log = calibration::read_smi_log(read_file(file, kMostLogBytes), file, smi_options(invocation));
  const std::string fingerprint = calibration::file_fingerprint(file);
  std::string stored;
  if (const auto database = invocation.text("db")) stored = stored_text(store_smi(log, file, fingerprint, *database), *database);
  write_json(invocation, json_text(smi_json(log, file, fingerprint)));
  print_text(invocation, smi_text(log) + stored);
  return Status::kDone;
}

}  // namespace

std::vector<std::string> measurement_kinds() { return {"nsys", "kineto", "nvidia-smi"}; }

void add_measurement_import_options(OptionList& options) {
  options.add_options()
      ("columns", po::value<std::string>()->value_name("LIST"), "nvidia-smi: the list that --query-gpu was given, where the file has no header")
      ("interval", po::value<std::string>()->value_name("SECONDS"), "nvidia-smi: between samples without a time of their own (default 1)");
}

std::string stored_text(const trace::Store::Appended& stored, const std::string& database) {
  return stored.added ? fmt::format("stored as run {} of {}\n", stored.id.value(), database) : fmt::format("already in {} as run {}: nothing was added\n", database, stored.id.value());
}

Status import_measurement(const std::string& kind, const std::string& file, const Invocation& invocation) {
  if (kind == "nvidia-smi") return import_smi(file, invocation);
  const calibration::GpuTrace trace = [&] {
    Progress progress{invocation.has("quiet")};
    progress.show("reading " + file);
    return kind == "nsys" ? calibration::read_nsys_trace(file) : calibration::read_kineto_trace(file);
  }();
  std::string stored;
  if (const auto database = invocation.text("db")) stored = stored_text(store_trace(trace, kind, file, *database), *database);
  write_json(invocation, json_text(trace_json(trace, kind, file)));
  print_text(invocation, trace_text(trace) + stored);
  return Status::kDone;
}

}  // namespace stepcast::app
