// `stepcast calibrate`: figures of collectives out of nccl-tests logs, with the error on logs held out.
#include <set>

#include <fmt/format.h>

#include "app/collective_cases.hpp"
#include "app/commands/commands.hpp"
#include "app/commands/common_options.hpp"
#include "sim/base/diagnostic.hpp"

namespace stepcast::app {
namespace {

namespace po = boost::program_options;

OptionList calibrate_options() {
  OptionList options;
  options.add_options()
      ("nccl-logs", po::value<std::string>()->value_name("FILE"), "table of logs: family, role, log, collective, ranks, gpus_per_process, cluster")
      ("folder", po::value<std::string>()->value_name("FOLDER"), "where nccl_logs/ and nccl_table.csv lie")
      ("family", po::value<std::string>()->value_name("NAME"), "fit this family; default: none, print errors with the profiles as they are");
  add_output_options(options);
  return options;
}

std::string medians(const std::vector<CasePoints>& cases, const calibration::Figures& figures, Take take) {
  std::vector<double> logs;
  for (const CasePoints& one : cases) {
    if (one.what.part == CasePart::kOutlier) continue;
    const CaseErrors errors = errors_of(one, figures, take);
    if (errors.large > 0) logs.push_back(errors.large_median);
  }
  if (logs.empty()) return "none";
  std::sort(logs.begin(), logs.end());
  return fmt::format("{:.1f} % ({} log{}, worst {:.1f} %)", 100 * logs[logs.size() / 2], logs.size(), logs.size() == 1 ? "" : "s", 100 * logs.back());
}

std::string fit_text(const std::vector<CasePoints>& cases) {
  std::vector<calibration::CollectivePoint> points;
  std::set<std::string> logs;
  for (const CasePoints& one : cases)
    for (std::size_t i = 0; i < one.points.size(); ++i) {
      if (!one.fitted[i]) continue;
      points.push_back(one.points[i]);
      logs.insert(one.what.log);
    }
  if (points.empty()) throw UserError(Diagnostic{.path = "--family", .problem = "no log of this family is to be fitted", .expected = "a row of role fit or half"});
  const bool local = points.front().layout.hosts == 1;
  calibration::Figures prior = calibration::prior_for_fit(cases.front().figures.parameters);
  if (!local) prior.parameters.local = cases.front().figures.parameters.local;
  const calibration::Figures fitted = local ? calibration::fit_local(points, prior) : calibration::fit_network(points, prior);
  std::string text;
  for (const CasePoints& one : cases) {
    calibration::Figures its = one.figures;  // a cluster of another GPU keeps its own figures inside the host
    if (local) its = fitted; else its.parameters.network = fitted.parameters.network;
    text += case_line(one, its);
  }
  const std::string source = fmt::format("stepcast calibrate, {}: {} points of {} logs (calibration/data/nccl_logs.csv)", cases.front().what.family, points.size(), logs.size());
  const std::string error = fmt::format("median |error| at 1 MiB and up: fitted {}, held out {}", medians(cases, fitted, Take::kFitted), medians(cases, fitted, Take::kHeld));
  return text + "\n" + (local ? local_yaml(fitted, prior, source, error) : network_yaml(fitted, prior, source, error));
}

Status calibrate(const Invocation& invocation, Session& session) {
  const auto file = invocation.text("nccl-logs");
  const auto folder = invocation.text("folder");
  if (!file || !folder) {
    throw UserError(Diagnostic{.path = "stepcast calibrate", .problem = file ? "--folder is missing" : "--nccl-logs is missing",
                               .expected = "--nccl-logs FILE --folder FOLDER"});
  }
  const HardwareShelf shelf = load_shelf(session.data);
  const auto family = invocation.text("family");
  std::vector<CasePoints> cases;
  for (const CollectiveCase& one : read_cases(*file)) {
    if (!family || one.family == *family) cases.push_back(points_of(one, *folder, shelf, cases.size()));
  }
  if (cases.empty()) throw UserError(Diagnostic{.path = "--family", .problem = "no row of this family", .got = family.value_or("")});
  std::string text = fmt::format("{:11} {:8} {:52} {:>5} {:>8} {:>8}\n", "family", "role", "log", "rows", ">= 1 MiB", "below");
  if (family) text += fit_text(cases);
  else for (const CasePoints& one : cases) text += case_line(one, one.figures);
  print_text(invocation, text);
  return Status::kDone;
}

}  // namespace

Command calibrate_command() {
  return {.name = "calibrate",
          .summary = "fit figures to measurements; the error on those held out",
          .operands = {},
          .details = "--nccl-logs: the cost model of collectives. Prints the median error of each log and, with --family, the section of the "
                     "profile that fits it.",
          .options = calibrate_options(),
          .run = calibrate};
}

}  // namespace stepcast::app
