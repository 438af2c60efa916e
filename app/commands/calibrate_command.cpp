// `stepcast calibrate`: figures of collectives out of nccl-tests logs, with the error on logs held out.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <thread>

#include <fmt/format.h>

#include "app/calibrate/calibrated_profile.hpp"
#include "app/calibrate/kernel_calibration.hpp"
#include "app/calibrate/point_calibration.hpp"
#include "app/calibrate/step_fit.hpp"
#include "app/commands/commands.hpp"
#include "app/commands/common_options.hpp"
#include "app/cli/share_text.hpp"
#include "app/scenario/cluster_file.hpp"
#include "calibration/profile_edit.hpp"
#include "sim/base/diagnostic.hpp"
#include "sim/base/file.hpp"
#include "sim/base/text.hpp"
#include "sim/scenario/read.hpp"
#include "sim/scenario/write.hpp"

namespace stepcast::app {
namespace {

namespace po = boost::program_options;

OptionList calibrate_options() {
  OptionList options;
  options.add_options()
      ("nccl-logs", po::value<std::string>()->value_name("FILE"), "table of logs: family, role, log, collective, ranks, gpus_per_process, cluster, communication")
      ("folder", po::value<std::string>()->value_name("FOLDER"), "where nccl_logs/ and nccl_table.csv lie")
      ("family", po::value<std::string>()->value_name("NAME"), "fit this family; default: none, print errors with the profiles as they are; with --table: this GPU alone, default: each")
      ("per-size", "a line for each size of each log")
      ("db", po::value<std::string>()->value_name("FILE"), "database that `stepcast measure` filled; with --cluster, its collectives or imported logs of nccl-tests")
      ("cluster", po::value<std::string>()->value_name("FILE"), "with --db: the cluster that its logs were measured on")
      ("profile", po::value<std::string>()->value_name("FILE"), "with --cluster: the profile whose collectives are fitted (default: the GPU's own)")
      ("kernels", po::value<std::vector<std::string>>()->value_name("FILE"), "table of single kernels (repeatable): fit the GPU's figures")
      ("gpu", po::value<std::string>()->value_name("NAME"), "the GPU whose rows or points are fitted (points of CPUs: cpu-host)")
      ("machine", po::value<std::string>()->value_name("NAME"), "with --db: whose points, where it has several machines'")
      ("half", po::value<std::int64_t>()->value_name("0|1"), "with --kernels: fit half of the shapes, by a hash, and print the error on the other")
      ("start", po::value<std::string>()->value_name("NAME"), "with --kernels: the profile that the search begins from; with --nccl-logs: nccl, its own constants (default: the GPU's own)")
      ("keep", po::value<std::vector<std::string>>()->value_name("KEY"), "with --kernels: a figure that is fitted with the others and stays in the profile as it is, measured better elsewhere (repeatable)")
      ("folds", po::value<std::int64_t>()->value_name("N"), "parts held out in turn (default 5; 0: none)")
      ("date", po::value<std::string>()->value_name("DAY"), "day of the measurements, for the fitted figures")
      ("source", po::value<std::string>()->value_name("TEXT"), "where the measurements come from, for the fitted figures")
      ("table", po::value<std::string>()->value_name("FILE"), "table of training runs (as of validate --table): fit the figures that step times tell, on a part of each hardware family's rows")
      ("rows", po::value<std::string>()->value_name("SHARE"), "with --table: the share of rows to fit, 30% by default; the rest tries the fit")
      ("seed", po::value<std::int64_t>()->value_name("N"), "with --table: which rows (default 1)")
      ("into", po::value<std::string>()->value_name("FILE"), "with --kernels, or --nccl-logs and --family: replace the fitted figures in the text of this profile (of a network card's, where logs are of several hosts); all else stays as it is written")
      ("output,o", po::value<std::string>()->value_name("FILE"), "write the GPU's profile with the fitted figures, for --profile; with --table, a folder that ends in /: a file for each GPU");
  add_output_options(options);
  return options;
}

std::string heading() { return fmt::format("{:11} {:8} {:52} {:>5} {:>8} {:>8}\n", "family", "role", "log", "rows", ">= 1 MiB", "below"); }

void write_profile(const std::string& path, const calibration::Profile& profile) {
  write_file(path, "# Written by stepcast calibrate: a profile for --profile.\n" + scenario::print_effective(profile));
}

FitTarget target_of(const HardwareShelf& shelf, const scenario::Loaded& loaded) {
  const topology::ClusterHardware hardware = pick_hardware(shelf, loaded);
  return {pick_profile(shelf, loaded, hardware.gpu).profile, hardware.nic.name, hardware.node.name};
}

// The figures that a case's cluster has once the fit is in its profile.
calibration::Figures figures_with(const CasePoints& one, const CollectiveFit& fit) {
  calibration::Figures its = one.figures;  // a cluster of another GPU keeps its own figures inside the host
  if (!fit.local) {
    its.parameters.network = fit.fitted.parameters.network;
    return its;
  }
  return fit.fitted;
}

std::string size_lines(const CasePoints& one, const calibration::Figures& figures) {
  std::string text;
  for (std::size_t i = 0; i < one.points.size(); ++i) {
    const calibration::CollectivePoint& point = one.points[i];
    const collective::Choice choice = collective::choose(point.kind, point.bytes, point.layout, point.idle, point.forced, figures.parameters);
    text += fmt::format("  {:14} {:>4} GPUs {:>12} B {:>12.1f} us {:>12.1f} us {:+8.1f} % {:6} {} {}\n", plan::name_of(point.kind), point.layout.ranks,
                        point.bytes.count(), point.measured_s * 1e6, forecast_s(point, figures) * 1e6, 100 * relative_error(point, figures),
                        one.fitted[i] ? "fitted" : "held", collective::name_of(choice.algorithm), collective::name_of(choice.protocol));
  }
  return text;
}

std::string lines_of(const std::vector<CasePoints>& cases, const std::optional<CollectiveFit>& fit, bool per_size) {
  std::string text;
  for (const CasePoints& one : cases) {
    const calibration::Figures figures = fit ? figures_with(one, *fit) : one.figures;
    text += case_line(one, figures);
    if (per_size) text += size_lines(one, figures);
  }
  return text;
}

std::string held_lines(const std::vector<CasePoints>& cases, const std::optional<CollectiveFit>& fit) {
  std::vector<calibration::Figures> figures;
  for (const CasePoints& one : cases) figures.push_back(fit ? figures_with(one, *fit) : one.figures);
  const std::string text = families_text(cases, figures);
  return text.empty() ? "" : '\n' + text;
}

std::string section_of(const CollectiveFit& fit) {
  return fit.local ? local_yaml(fit.fitted, fit.prior, fit.source, fit.error) : network_yaml(fit.fitted, fit.prior, fit.source, fit.error);
}

// Where a fit begins that is to give the same whatever the profile holds: NCCL's own constants for what is fitted. NCCL
// has none for a host that copies each byte: there the profile's ceiling is where it begins.
calibration::Figures nccl_start(const CasePoints& one, const HardwareShelf& shelf) {
  const topology::Gpu gpu = pick_hardware(shelf, cluster_of_text(one.what.scenario(), one.what.log)).gpu;
  const collective::Parameters constants = calibration::collective_parameters(gpu, nullptr, nullptr);
  calibration::Figures start = one.figures;
  if (one.points.front().layout.hosts == 1) {
    start.parameters.local = constants.local;
  } else {
    const double simple = start.parameters.network.simple_ceiling;
    start.parameters.network = constants.network;
    start.parameters.network.simple_ceiling = simple;
  }
  return start;
}

std::string calibrate_logs(const Invocation& invocation, const HardwareShelf& shelf) {
  const auto folder = invocation.text("folder");
  if (!folder) throw UserError(Diagnostic{.path = "stepcast calibrate", .problem = "--folder is missing", .expected = "--nccl-logs FILE --folder FOLDER"});
  const auto family = invocation.text("family");
  std::vector<CasePoints> cases;
  for (const CollectiveCase& one : read_cases(*invocation.text("nccl-logs"))) {
    if (!family || one.family == *family) cases.push_back(points_of(one, *folder, shelf, cases.size()));
  }
  if (cases.empty()) throw UserError(Diagnostic{.path = "--family", .problem = "no row of this family", .got = family.value_or("")});
  std::optional<CollectiveFit> fit;
  if (const auto start = invocation.text("start"); start && *start != "nccl") {
    throw UserError(Diagnostic{.path = "--start", .problem = "unknown start", .expected = "nccl, NCCL's own constants, with --nccl-logs", .got = *start});
  }
  if (family) fit = fit_collectives(cases, invocation.has("start") ? nccl_start(cases.front(), shelf) : cases.front().figures, *family);
  if (const auto output = invocation.text("output")) {
    if (!fit) throw UserError(Diagnostic{.path = "--output", .problem = "nothing is fitted", .expected = "--family NAME with --nccl-logs"});
    write_profile(*output, with_fit(target_of(shelf, cluster_of_text(cases.front().what.scenario(), cases.front().what.log)), *fit));
  }
  if (const auto into = invocation.text("into")) {
    if (!fit) throw UserError(Diagnostic{.path = "--into", .problem = "nothing is fitted", .expected = "--family NAME with --nccl-logs"});
    const std::string text = read_file(*into);
    write_file(*into, fit->local ? calibration::with_section(text, section_of(*fit)) : calibration::with_margin_lines(text, section_of(*fit)));
  }
  return heading() + lines_of(cases, fit, invocation.has("per-size")) + held_lines(cases, fit) + (fit ? "\n" + section_of(*fit) : "");
}

std::string calibrate_database(const Invocation& invocation, const HardwareShelf& shelf) {
  const auto file = invocation.text("cluster");
  if (!file) throw UserError(Diagnostic{.path = "stepcast calibrate", .problem = "--cluster is missing", .expected = "--db FILE --cluster FILE"});
  scenario::Loaded loaded = load_cluster(*file, {});
  if (const auto profile = invocation.text("profile")) loaded.scenario.profile = std::filesystem::absolute(*profile).string();
  const CollectiveMachine cluster{shelf, loaded};
  const std::vector<StoredLog> logs = stored_logs(*invocation.text("db"), invocation.text("machine"));
  if (logs.empty()) {
    throw UserError(Diagnostic{.path = "--db", .problem = "no log of nccl-tests and no measured collective in it", .expected = "rows whose collective and ranks the log tells",
                               .hint = "stepcast import nccl-tests FILE --db FILE"});
  }
  const StoredCases cases = cases_of(logs, cluster);
  calibration::Figures base{cluster.machine().collectives, {cluster.launch().seconds(), cluster.issue().seconds()}};
  FitTarget target = target_of(shelf, loaded);
  if (!target.profile.name.ends_with(" calibrated")) target.profile.name += " calibrated";
  std::string text = heading();
  const auto add = [&](const std::vector<CasePoints>& part, const char* where) {
    if (part.empty()) return;
    const CollectiveFit fit = fit_collectives(part, base, loaded.scenario.name + where);
    text += lines_of(part, fit, invocation.has("per-size"));
    if (fit.local) base = fit.fitted;
    target.profile = with_fit(target, fit);
  };
  add(cases.local, ", inside a host");
  add(cases.network, ", between hosts");
  if (const auto output = invocation.text("output")) write_profile(*output, target.profile);
  return text;
}

int folds_of(const Invocation& invocation) {
  const std::int64_t folds = invocation.integer("folds").value_or(5);
  if (folds < 0 || folds == 1 || folds > 100) throw UserError(Diagnostic{.path = "--folds", .problem = "not a number of folds", .expected = "0, or 2 to 100", .got = std::to_string(folds)});
  return static_cast<int>(folds);
}

std::optional<std::string> day_of(const Invocation& invocation) {
  const auto date = invocation.text("date");
  if (date && !scenario::is_day(*date)) throw UserError(Diagnostic{.path = "--date", .problem = "not a day", .expected = "year-month-day, such as 2026-11-30", .got = *date});
  return date;
}

Status calibrate_tables(const Invocation& invocation, const HardwareShelf& shelf) {
  const auto gpu = invocation.text("gpu");
  if (!gpu) throw UserError(Diagnostic{.path = "stepcast calibrate", .problem = "--gpu is missing", .expected = "--kernels FILE --gpu NAME"});
  KernelRequest request{.tables = invocation.list("kernels"), .gpu = *gpu, .folds = folds_of(invocation), .half = {}, .date = day_of(invocation), .source = invocation.text("source").value_or(""),
                        .start = invocation.text("start").value_or(""), .kept = invocation.list("keep")};
  if (const auto half = invocation.integer("half")) {
    if (*half != 0 && *half != 1) throw UserError(Diagnostic{.path = "--half", .problem = "not a half", .expected = "0 or 1", .got = std::to_string(*half)});
    request.half = static_cast<int>(*half);
  }
  const KernelCalibration done = calibrate_kernels(shelf, request);
  if (const auto output = invocation.text("output")) write_profile(*output, done.fit.profile);
  if (const auto into = invocation.text("into")) {
    std::vector<std::string> keys;
    for (const calibration::FittedFigure& f : done.fit.figures)
      if (std::find(request.kept.begin(), request.kept.end(), f.key) == request.kept.end()) keys.push_back(f.key);
    const std::string fitted = scenario::print_effective(done.fit.profile);
    write_file(*into, calibration::with_section(calibration::with_figure_lines(read_file(*into), fitted, keys), calibration::section_of(fitted, "fitted_on")));
  }
  write_json(invocation, calibration_json(done));
  print_text(invocation, calibration_text(done));
  return Status::kDone;
}

Status calibrate_measured(const Invocation& invocation, const HardwareShelf& shelf) {
  const PointCalibration done = calibrate_points(shelf, stored_points(*invocation.text("db")), {.gpu = invocation.text("gpu"), .machine = invocation.text("machine"), .folds = folds_of(invocation)});
  if (const auto output = invocation.text("output")) write_profile(*output, done.fit.profile);
  write_json(invocation, point_calibration_json(done));
  print_text(invocation, point_calibration_text(done));
  return Status::kDone;
}

double rows_share(const std::string& text) {
  const double share = share_of(text).value_or(0.0);
  if (!(share > 0.0 && share < 1.0)) throw UserError(Diagnostic{.path = "--rows", .problem = "not a share of the rows", .expected = "between 0 and 100 %, such as 30%", .got = text});
  return share;
}

Status calibrate_steps(const Invocation& invocation, const HardwareShelf& shelf) {
  const StepFitRequest request{.file = *invocation.text("table"),
                               .family = invocation.text("family"),
                               .share = rows_share(invocation.text("rows").value_or("30%")),
                               .seed = static_cast<std::uint64_t>(invocation.integer("seed").value_or(1)),
                               .date = day_of(invocation),
                               .threads = std::thread::hardware_concurrency()};
  Progress progress{invocation.has("quiet")};
  const StepFits fits = fit_steps(request, shelf, [&](const std::string& what) { progress.show(what); });
  if (const auto output = invocation.text("output"); output && output->ends_with('/')) {
    std::error_code failed;  // told by the first file
    std::filesystem::create_directories(std::filesystem::path{*output}.parent_path(), failed);
    for (const StepFit& fit : fits.families) write_profile(*output + fit.profile.name + ".yaml", fit.profile);
  } else if (output) {
    if (fits.families.size() != 1) throw UserError(Diagnostic{.path = "--output", .problem = fmt::format("{} hardware families are fitted", fits.families.size()), .expected = "--family NAME with it, or a folder that ends in /, for a file each"});
    write_profile(*output, fits.families.front().profile);
  }
  write_json(invocation, step_fit_json(fits).dump(2) + "\n");
  print_text(invocation, step_fit_text(fits));
  return Status::kDone;
}

Status calibrate(const Invocation& invocation, Session& session) {
  if (const auto output = invocation.text("output"); output && output->ends_with('/') && !invocation.has("table")) {
    throw UserError(Diagnostic{.path = "--output", .problem = "a folder, where one profile is fitted", .expected = "a file; a folder with --table", .got = *output});
  }
  if (invocation.has("table")) {
    if (invocation.has("kernels") || invocation.has("nccl-logs") || invocation.has("db")) throw UserError(Diagnostic{.path = "stepcast calibrate", .problem = "two sources of measurements", .expected = "--table, --kernels, --nccl-logs or --db"});
    return calibrate_steps(invocation, load_shelf(session.data));
  }
  if (invocation.has("kernels")) {
    if (invocation.has("nccl-logs") || invocation.has("db")) throw UserError(Diagnostic{.path = "stepcast calibrate", .problem = "two sources of measurements", .expected = "--kernels, --nccl-logs or --db"});
    return calibrate_tables(invocation, load_shelf(session.data));
  }
  if (invocation.has("db") && !invocation.has("cluster") && !invocation.has("nccl-logs")) return calibrate_measured(invocation, load_shelf(session.data));
  const bool logs = invocation.text("nccl-logs").has_value();
  if (logs == invocation.text("db").has_value()) {
    throw UserError(Diagnostic{.path = "stepcast calibrate", .problem = logs ? "two sources of measurements" : "no measurements",
                               .expected = "--table FILE, --kernels FILE --gpu NAME, --nccl-logs FILE --folder FOLDER, or --db FILE (points of stepcast measure), or --db FILE --cluster FILE (logs)"});
  }
  const HardwareShelf shelf = load_shelf(session.data);
  print_text(invocation, logs ? calibrate_logs(invocation, shelf) : calibrate_database(invocation, shelf));
  return Status::kDone;
}

}  // namespace

Command calibrate_command() {
  return {.name = "calibrate",
          .summary = "fit figures to measurements; the error on those held out",
          .operands = {},
          .details = "--kernels: the figures of a GPU (efficiencies, rates inside the chip, overheads) out of tables of single products and attention; prints each "
                     "figure with its deviation and how far forecasts are on shapes that the fit did not see. "
                     "--db: the same out of points of `stepcast measure`, of one machine, and costs of copies, storage and collectives. "
                     "The cost model of collectives, out of logs of nccl-tests. --nccl-logs: a table that says which log was measured on which cluster and "
                     "which are held out; prints the median error of each log and, with --family, the section of the profile that fits it. --db with --cluster: "
                     "logs that were imported, all of one cluster; every other size is fitted, the error is on the rest. "
                     "--table: host times, waits of collectives, sustained clock and memory bandwidth out of step times of training runs; prints the "
                     "error on the rows that were fitted and on those that were not, for each GPU. -o writes a profile.",
          .options = calibrate_options(),
          .run = calibrate};
}

}  // namespace stepcast::app
