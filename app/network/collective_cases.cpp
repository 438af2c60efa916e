#include "app/network/collective_cases.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "app/network/collective_text.hpp"
#include "app/scenario/cluster_file.hpp"
#include "calibration/nccl_tests_log.hpp"
#include "sim/base/csv.hpp"
#include "sim/base/diagnostic.hpp"
#include "sim/base/file.hpp"
#include "sim/base/text.hpp"
#include "sim/run/traffic.hpp"

namespace stepcast::app {
namespace {

using calibration::CollectivePoint;
using plan::CollectiveKind;

constexpr std::int64_t kLarge = 1 << 20;

const std::map<std::string, CollectiveKind> kKinds{
    {"all_reduce", CollectiveKind::kAllReduce}, {"all_gather", CollectiveKind::kAllGather}, {"reduce_scatter", CollectiveKind::kReduceScatter},
    {"broadcast", CollectiveKind::kBroadcast},  {"alltoall", CollectiveKind::kAllToAll},    {"sendrecv", CollectiveKind::kSendReceive}};

struct Measured {
  CollectiveKind kind;
  std::int64_t ranks;
  Bytes bytes;
  double seconds;
};

// Sizes are in elements, times in milliseconds.
std::vector<Measured> from_table(const std::string& name, const std::string& collective, const std::string& file) {
  static const std::map<std::string, std::int64_t> kWidth{{"int8", 1}, {"half", 2}, {"bfloat16", 2}, {"float", 4}};
  const std::size_t mark = name.find('@');
  const std::string system = name.substr(0, mark);
  const std::string version = mark == std::string::npos ? "" : "nccl/" + name.substr(mark + 1);
  const CsvTable table = CsvTable::read(file);
  const auto column = [&](const char* key) { return table.require_column(key); };
  std::vector<Measured> rows;
  for (const CsvTable::Row& row : table.rows()) {
    const auto& f = row.fields;
    if (f[column("system")] != system || (!version.empty() && f[column("source_version")] != version)) continue;
    const auto kind = kKinds.find(f[column("op_name")]);
    const auto width = kWidth.find(f[column("nccl_dtype")]);
    if (kind == kKinds.end() || width == kWidth.end() || (!collective.empty() && kind->first != collective)) continue;
    rows.push_back({kind->second, std::stoll(f[column("num_gpus")]), Bytes{std::stoll(f[column("message_size")]) * width->second},
                    std::stod(f[column("latency")]) * 1e-3});
  }
  return rows;
}

std::vector<Measured> from_log(const CollectiveCase& what, const std::string& file) {
  std::vector<Measured> rows;
  for (const calibration::NcclRow& row : calibration::read_nccl_log(read_file(file), file).rows) {
    const auto seconds = row.seconds();
    if (row.size > 0 && seconds) rows.push_back({kKinds.at(what.collective), what.ranks, Bytes{row.size}, *seconds});
  }
  return rows;
}

collective::IdleRates idle_rates(const CollectiveMachine& cluster, CollectiveKind kind, const collective::Layout& layout) {
  const run::Machine& machine = cluster.machine();
  run::LinkPaths paths{machine.fabric, machine.paths};
  run::UseBuilder builder{machine.router, paths};
  std::vector<collective::Member> members;
  for (std::uint32_t r = 0; r < layout.ranks; ++r) members.push_back({r, machine.fabric.domain_of(r)});
  const collective::HostMesh mesh = mesh_of_hosts(machine);
  collective::IdleRates rates{};
  for (const collective::Algorithm algorithm : candidates(kind, layout, machine.collectives, machine.forced)) {
    rates[static_cast<std::size_t>(algorithm)] =
        idle_rate(edges_of(algorithm, members, mesh), machine.fabric, algorithm, {}, builder, paths);
  }
  return rates;
}

double median(std::vector<double> values) {
  if (values.empty()) return 0.0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

const char* name_of(CasePart part) {
  switch (part) {
    case CasePart::kFit: return "fit";
    case CasePart::kHeld: return "held";
    case CasePart::kHalf: return "half";
    case CasePart::kOutlier: return "outlier";
  }
  return "";
}

}  // namespace

std::string CollectiveCase::scenario() const {
  return "cluster: " + cluster + "\n" + (communication.empty() ? "" : "communication: " + communication + "\n");
}

std::string CollectiveCase::label() const { return log.starts_with("table:") && !collective.empty() ? log + " " + collective : log; }

std::vector<CollectiveCase> read_cases(const std::string& file) {
  static const std::map<std::string, CasePart> kParts{
      {"fit", CasePart::kFit}, {"held", CasePart::kHeld}, {"half", CasePart::kHalf}, {"outlier", CasePart::kOutlier}};
  const CsvTable table = CsvTable::read(file);
  const auto column = [&](const char* key) { return table.require_column(key); };
  std::vector<CollectiveCase> cases;
  for (const CsvTable::Row& row : table.rows()) {
    const auto& f = row.fields;
    const auto refuse = [&](const char* key, const std::string& expected) {
      throw UserError(Diagnostic{.where = {table.file(), row.line, 0}, .path = key, .problem = "not understood", .expected = expected, .got = f[column(key)]});
    };
    const auto part = kParts.find(f[column("role")]);
    if (part == kParts.end()) refuse("role", "fit, held, half or outlier");
    CollectiveCase one{.family = f[column("family")], .part = part->second, .log = f[column("log")], .collective = f[column("collective")],
                       .ranks = 0, .gpus_per_process = 1, .cluster = f[column("cluster")], .communication = f[column("communication")], .remark = f[column("remark")]};
    const auto ranks = parse_number(f[column("ranks")]);
    const auto each = parse_number(f[column("gpus_per_process")]);
    const bool is_table = one.log.starts_with("table:");
    if (!kKinds.contains(one.collective) && !(is_table && one.collective.empty())) refuse("collective", "a name of nccl-tests");
    if (!is_table) {
      if (!ranks || *ranks < 2) refuse("ranks", "2 or more");
      one.ranks = static_cast<std::int64_t>(*ranks);
    }
    if (!each || *each < 0) refuse("gpus_per_process", "0 (a graph issues the calls) or more");
    one.gpus_per_process = static_cast<std::int64_t>(*each);
    cases.push_back(std::move(one));
  }
  return cases;
}

CasePoints points_of(const CollectiveCase& what, const std::string& folder, const HardwareShelf& shelf, std::size_t number) {
  const bool table = what.log.starts_with("table:");
  const std::vector<Measured> rows = table ? from_table(what.log.substr(6), what.collective, folder + "/nccl_table.csv")
                                           : from_log(what, folder + "/nccl_logs/" + what.log + ".log");
  const CollectiveMachine cluster{shelf, cluster_of_text(what.scenario(), what.log)};
  CasePoints points{.what = what, .points = {}, .fitted = {}, .figures = {cluster.machine().collectives, {cluster.launch().seconds(), cluster.issue().seconds()}}};
  std::map<std::pair<CollectiveKind, std::int64_t>, collective::IdleRates> rates;
  for (const Measured& row : rows) {
    const collective::Layout layout = cluster.layout(static_cast<std::int32_t>(row.ranks));
    const auto [it, is_new] = rates.try_emplace({row.kind, row.ranks});
    if (is_new) it->second = idle_rates(cluster, row.kind, layout);
    points.fitted.push_back(what.part == CasePart::kFit || (what.part == CasePart::kHalf && every_other(points.points.size())));
    points.points.push_back({.log = number, .kind = row.kind, .bytes = row.bytes, .layout = layout, .idle = it->second, .infiniband = cluster.infiniband(), .forced = cluster.machine().forced,
                             .gpus_per_process = what.gpus_per_process, .measured_s = row.seconds});
  }
  return points;
}

CollectivePoint cluster_point(const CollectiveMachine& cluster, CollectiveKind kind, std::int32_t ranks, Bytes bytes) {
  const collective::Layout layout = cluster.layout(ranks);
  return {.kind = kind, .bytes = bytes, .layout = layout, .idle = idle_rates(cluster, kind, layout), .infiniband = cluster.infiniband(), .forced = cluster.machine().forced};
}

CaseErrors errors_of(const CasePoints& points, const calibration::Figures& figures, Take take) {
  std::vector<double> large;
  std::vector<double> small;
  for (std::size_t i = 0; i < points.points.size(); ++i) {
    if (take != Take::kAll && points.fitted[i] != (take == Take::kFitted)) continue;
    const double error = std::abs(relative_error(points.points[i], figures));
    (points.points[i].bytes.count() >= kLarge ? large : small).push_back(error);
  }
  return {large.size(), median(large), small.size(), median(small)};
}

bool every_other(std::size_t index) { return index % 2 == 0; }

std::string medians_text(std::span<const CasePoints> cases, const calibration::Figures& figures, Take take) {
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

std::string families_text(std::span<const CasePoints> cases, std::span<const calibration::Figures> figures) {
  constexpr double kLargeFloor = 0.12;
  constexpr double kSmallFloor = 0.25;
  struct Family {
    std::vector<double> large;
    std::vector<double> small;
  };
  std::map<std::string, Family> families;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const CasePart part = cases[i].what.part;
    if (part != CasePart::kHeld && part != CasePart::kHalf) continue;
    const CaseErrors errors = errors_of(cases[i], figures[i], part == CasePart::kHalf ? Take::kHeld : Take::kAll);
    Family& family = families[cases[i].what.family];
    if (errors.large > 0) family.large.push_back(errors.large_median);
    if (errors.small > 0) family.small.push_back(errors.small_median);
  }
  std::string text = fmt::format("{:11} {:>5} {:>8} {:>8} {:>6} {:>8} {:>8} {:>6}\n", "held out", "logs", ">= 1 MiB", "worst", "12 %", "below", "worst", "25 %");
  const auto cells = [](std::vector<double> errors, double floor) {
    if (errors.empty()) return fmt::format(" {:>8} {:>8} {:>6}", "-", "-", "-");
    std::sort(errors.begin(), errors.end());
    const std::size_t half = errors.size() / 2;
    const double median = errors.size() % 2 == 1 ? errors[half] : 0.5 * (errors[half - 1] + errors[half]);
    return fmt::format(" {:>8} {:>8} {:>6}", fmt::format("{:.1f} %", 100 * median), fmt::format("{:.1f} %", 100 * errors.back()), median <= floor ? "yes" : "no");
  };
  for (const auto& [name, family] : families)
    text += fmt::format("{:11} {:>5}{}{}\n", name, std::max(family.large.size(), family.small.size()), cells(family.large, kLargeFloor), cells(family.small, kSmallFloor));
  return families.empty() ? "" : text;
}

std::string case_line(const CasePoints& points, const calibration::Figures& figures) {
  const Take take = points.what.part == CasePart::kHalf ? Take::kHeld : Take::kAll;
  const CaseErrors errors = errors_of(points, figures, take);
  const auto cell = [](std::size_t count, double error) { return count == 0 ? std::string{"-"} : fmt::format("{:.1f} %", 100 * error); };
  return fmt::format("{:11} {:8} {:52} {:5} {:>8} {:>8}{}\n", points.what.family, name_of(points.what.part), points.what.label(),
                     points.points.size(), cell(errors.large, errors.large_median), cell(errors.small, errors.small_median),
                     points.what.remark.empty() ? "" : "  " + points.what.remark);
}

}  // namespace stepcast::app
