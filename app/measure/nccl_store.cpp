#include "app/measure/nccl_store.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <sstream>
#include <stdexcept>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/calibrate/stored_points.hpp"
#include "app/cli/command_line.hpp"
#include "app/forecast/forecast_store.hpp"
#include "app/network/collective_text.hpp"
#include "sim/base/diagnostic.hpp"
#include "sim/base/text.hpp"
#include "sim/plan/names.hpp"

namespace stepcast::app {
namespace {

constexpr const char* kKind = "nccl-tests";

std::optional<plan::CollectiveKind> kind_of(const std::string& name) {
  using plan::CollectiveKind;
  for (const CollectiveKind kind : {CollectiveKind::kAllReduce, CollectiveKind::kAllGather, CollectiveKind::kReduceScatter,
                                    CollectiveKind::kBroadcast, CollectiveKind::kAllToAll, CollectiveKind::kSendReceive}) {
    if (name == nccl_tests_name(kind)) return kind;
  }
  return std::nullopt;
}

// "nThread 1 nGpus 8 minBytes 8": the number after a word.
std::int64_t option_of(const std::string& options, const std::string& word, std::int64_t usual) {
  std::istringstream stream{options};
  for (std::string token; stream >> token;) {
    if (token != word) continue;
    std::int64_t value = usual;
    stream >> value;
    return value;
  }
  return usual;
}

std::optional<double> seconds_of(const nlohmann::json& row) {
  const std::string text = row.at("out_of_place").at("time");
  try {
    return std::stod(text) * (row.at("unit") == "ms" ? 1e-3 : 1e-6);
  } catch (const std::exception&) {
    return std::nullopt;  // N/A
  }
}

// Collectives among the points of `stepcast measure`, by machine and number of workers.
class PointLogs {
 public:
  // `key` is the point's (app/measure/measured_point.hpp).
  void add(const std::string& key, const nlohmann::json& json) {
    const nlohmann::json work = json.value("work", nlohmann::json::array());
    if (work.size() != 1 || !json.contains("seconds")) return;
    const auto kind = point_kind(work[0].value("op", ""));
    std::istringstream lines{key};
    std::string machine;
    std::int64_t workers = 0;
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("machine ")) machine = line.substr(8);
      if (line.starts_with("workers ")) workers = std::strtoll(line.c_str() + 8, nullptr, 10);
    }
    std::vector<double> seconds = seconds_of_record(json);
    std::erase_if(seconds, [](double s) { return s <= 0.0; });
    if (!kind || workers < 2 || seconds.empty()) return;
    if (work[0].at("bytes").get<std::int64_t>() < 1) throw std::out_of_range("a collective of " + work[0].at("bytes").dump() + " B");
    std::nth_element(seconds.begin(), seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2), seconds.end());
    rows_[machine][workers].push_back({*kind, workers, 1, Bytes{work[0].at("bytes").get<std::int64_t>()}, seconds[seconds.size() / 2], {}});
  }

  [[nodiscard]] std::vector<StoredLog> of(const std::optional<std::string>& machine) const {
    std::vector<std::string> names;
    for (const auto& [name, unused] : rows_) names.push_back(name);
    if (machine ? !rows_.contains(*machine) : names.size() > 1) {
      throw UserError(Diagnostic{.path = "--machine", .problem = machine ? "no collectives were measured on '" + *machine + "'" : "points of several machines are in the database",
                                 .expected = names.empty() ? "" : "one of " + join(names, ", "), .hint = "stepcast measure --workers 2 --machine NAME --db FILE"});
    }
    std::vector<StoredLog> logs;
    for (const auto& [name, by_workers] : rows_) {
      if (machine && name != *machine) continue;
      for (const auto& [workers, rows] : by_workers) logs.push_back({fmt::format("{}, {} workers", name, workers), rows});
    }
    return logs;
  }

 private:
  static std::optional<plan::CollectiveKind> point_kind(const std::string& op) {
    using plan::CollectiveKind;
    for (const CollectiveKind kind : {CollectiveKind::kAllReduce, CollectiveKind::kAllGather, CollectiveKind::kReduceScatter, CollectiveKind::kBroadcast, CollectiveKind::kAllToAll, CollectiveKind::kSendReceive}) {
      if (op == plan::name_of(kind)) return kind;
    }
    return std::nullopt;
  }
  std::map<std::string, std::map<std::int64_t, std::vector<StoredRow>>> rows_;
};

// "mpirun ... -x NCCL_ALGO=Ring all_reduce_perf": what the command fixed; lists and exclusions fix nothing.
collective::Forced forced_by(const std::string& command) {
  const auto value_of = [&](const std::string& variable) {
    const std::size_t at = command.find(variable + "=");
    if (at == std::string::npos) return std::string{};
    const std::size_t begin = at + variable.size() + 1;
    std::string value = command.substr(begin, command.find_first_of(" \t'\"", begin) - begin);
    std::transform(value.begin(), value.end(), value.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return value;
  };
  collective::Forced forced;
  const std::map<std::string, collective::Algorithm> algorithms{{"ring", collective::Algorithm::kRing}, {"tree", collective::Algorithm::kTree}, {"nvls", collective::Algorithm::kNvls}, {"nvlstree", collective::Algorithm::kNvlsTree}};
  const std::map<std::string, collective::Protocol> protocols{{"ll", collective::Protocol::kLl}, {"ll128", collective::Protocol::kLl128}, {"simple", collective::Protocol::kSimple}};
  if (const auto found = algorithms.find(value_of("NCCL_ALGO")); found != algorithms.end()) forced.algorithm = found->second;
  if (const auto found = protocols.find(value_of("NCCL_PROTO")); found != protocols.end()) forced.protocol = found->second;
  return forced;
}

std::vector<StoredRow> rows_of(const nlohmann::json& json) {
  std::vector<StoredRow> rows;
  for (const nlohmann::json& row : json.at("rows")) {
    const nlohmann::json& run = json.at("runs").at(row.at("run").get<std::size_t>());
    const auto kind = run.at("collective").is_string() ? kind_of(run.at("collective")) : std::nullopt;
    const auto seconds = seconds_of(row);
    const std::int64_t size = row.at("size");
    if (!kind || !run.at("ranks").is_number() || !seconds || !(*seconds > 0.0 && *seconds < 1e7) || size <= 0) continue;
    const std::string options = run.at("options").is_string() ? run.at("options").get<std::string>() : "";
    const std::string command = run.contains("command") && run.at("command").is_string() ? run.at("command").get<std::string>() : "";
    rows.push_back({*kind, run.at("ranks"), option_of(options, "nGpus", 1), Bytes{size}, *seconds, forced_by(command)});
  }
  return rows;
}

}  // namespace

trace::Run stored_log(const calibration::NcclLog& log, const std::string& file, nlohmann::ordered_json json) {
  trace::Run run;
  run.name = std::filesystem::path{file}.stem().string();
  run.origin = "measured";
  run.version = version();
  run.created = utc_now();
  json["kind"] = kKind;
  run.results = json.dump();
  trace::Recording& recording = run.recording;
  recording.name = run.name;
  recording.origin = run.origin;
  recording.streams = {"out of place", "in place"};
  const auto ranks = calibration::ranks_of(log, 0);
  recording.workers[RankId{0u}] = ranks ? fmt::format("rank 0 of {}", ranks->ranks) : "rank 0";
  std::array<TimePoint, 2> now{};
  for (const calibration::NcclRow& row : log.rows) {
    const std::string name = fmt::format("{} {}", log.runs[row.run].collective.empty() ? "collective" : log.runs[row.run].collective, row.dtype);
    const auto add = [&](std::uint8_t stream, const calibration::NcclRow& timed) {
      const auto seconds = timed.seconds();
      if (!seconds) return;
      const Duration duration = Duration::from_seconds(*seconds);
      recording.spans.push_back({.worker = RankId{0u}, .stream = stream, .start = now[stream], .duration = duration, .name = name,
                                 .category = "collective", .layer = {}, .micro_batch = {}, .bytes = row.size, .flops = {}});
      now[stream] = now[stream] + duration;
    };
    add(0, row);
    if (!row.in_place) continue;
    calibration::NcclRow other = row;
    other.out_of_place = *row.in_place;
    add(1, other);
  }
  return run;
}

std::vector<StoredLog> stored_logs(const std::string& database, const std::optional<std::string>& machine) {
  const trace::Store store{database, trace::Store::Mode::kRead};
  std::vector<StoredLog> logs;
  PointLogs points;
  for (const trace::RunSummary& summary : store.runs()) {
    if (summary.origin != "measured") continue;
    const trace::Run stored = store.load(summary.id);
    StoredLog log{.name = summary.name, .rows = {}};
    read_record(database, summary, [&] {
      const nlohmann::json json = nlohmann::json::parse(stored.results, nullptr, false);
      if (!json.is_object()) return;
      if (json.value("kind", "") == "measure") points.add(stored.scenario, json);
      if (!machine && json.value("kind", "") == kKind) log.rows = rows_of(json);
    });
    if (!log.rows.empty()) logs.push_back(std::move(log));
  }
  for (StoredLog& log : points.of(machine)) logs.push_back(std::move(log));
  return logs;
}

}  // namespace stepcast::app
