#include "calibration/nccl_tests_json.hpp"

#include <array>
#include <cmath>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "calibration/json_stream.hpp"
#include "sim/base/diagnostic.hpp"
#include "sim/base/text.hpp"

namespace stepcast::calibration {
namespace {

using Json = nlohmann::json;

constexpr std::array kCollectives{"all_reduce", "all_gather", "reduce_scatter", "broadcast", "alltoallv", "alltoall", "sendrecv", "scatter", "gather", "hypercube", "reduce"};

[[noreturn]] void refuse(const std::string& file, const std::string& problem, const std::string& got = "") {
  throw UserError(Diagnostic{.where = {file, 0, 0}, .problem = problem, .expected = "the file that nccl-tests writes with -J: config and results", .got = got});
}

// Numbers may be strings, and strings padded.
std::string text_of(const Json& value) {
  if (value.is_string()) return std::string{trim(value.get<std::string>())};
  if (value.is_number_integer()) return std::to_string(value.get<std::int64_t>());
  if (value.is_number() && std::isfinite(value.get<double>())) return fmt::format("{}", value.get<double>());
  return "N/A";
}

std::optional<std::int64_t> whole_of(const Json& object, const char* key) {
  if (!object.contains(key)) return std::nullopt;
  const auto number = parse_number(text_of(object.at(key)));
  if (!number || *number != std::floor(*number) || std::abs(*number) > 9e15) return std::nullopt;
  return static_cast<std::int64_t>(*number);
}

std::string word_of(const Json& object, const char* key) { return object.contains(key) ? text_of(object.at(key)) : std::string{}; }

// What is no number is N/A, as in the printed table.
std::string figure_of(const Json& object, const char* key) {
  const std::string text = word_of(object, key);
  return parse_number(text) ? text : "N/A";
}

std::optional<NcclTiming> timing_of(const Json& row, const char* place) {
  if (!row.contains(place) || !row.at(place).is_object()) return std::nullopt;
  const Json& t = row.at(place);
  return NcclTiming{figure_of(t, t.contains("time") ? "time" : "cpu_time"), figure_of(t, "alg_bw"), figure_of(t, "bus_bw"), figure_of(t, "nwrong")};
}

std::string collective_of(const std::string& program) {
  const std::string name = program.substr(program.find_last_of('/') + 1);
  for (const char* collective : kCollectives)
    if (name.starts_with(std::string{collective} + "_perf")) return collective;
  return "";
}

// The command, its program and options alone.
void note_arguments(const Json& json, NcclRun& run) {
  if (!json.contains("args") || !json.at("args").is_array()) return;
  for (const Json& argument : json.at("args")) {
    const std::string text = printable(text_of(argument));
    if (run.command.empty()) run.collective = collective_of(text);
    run.command += (run.command.empty() ? "" : " ") + text;
  }
}

// As the printed table has them, so that readers of options find them: "nThread 1 nGpus 8 ...".
void note_config(const Json& json, NcclRun& run) {
  if (!json.contains("config") || !json.at("config").is_object()) return;
  const Json& config = json.at("config");
  constexpr std::array<std::pair<const char*, const char*>, 6> kOptions{{{"nthreads", "nThread"}, {"ngpus", "nGpus"}, {"minimum_bytes", "minBytes"}, {"maximum_bytes", "maxBytes"},
                                                                         {"warmup_iters", "warmup iters:"}, {"iterations", "iters:"}}};
  for (const auto& [key, word] : kOptions)
    if (const auto number = whole_of(config, key)) run.options += fmt::format("{}{} {}", run.options.empty() ? "" : " ", word, *number);
  if (!config.contains("devices") || !config.at("devices").is_array()) return;
  for (const Json& device : config.at("devices")) {
    const auto rank = device.is_object() ? whole_of(device, "rank") : std::nullopt;
    if (rank) run.devices.push_back({.rank = *rank, .host = printable(word_of(device, "hostname")), .name = printable(word_of(device, "device_info"))});
  }
}

// A file that a killed run left: results up to the last whole one.
std::optional<Json> read_cut(std::string_view text) {
  const std::size_t results = text.find("\"results\"");
  if (results == std::string_view::npos) return std::nullopt;
  std::size_t end = text.size();
  for (int tries = 0; tries < 8; ++tries) {
    end = text.find_last_of('}', end - 1);
    if (end == std::string_view::npos || end < results) return std::nullopt;
    Json json = Json::parse(std::string{text.substr(0, end + 1)} + "]}", nullptr, false);
    if (!json.is_discarded()) return json;
    if (end == 0) return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

NcclLog read_nccl_json(std::string_view text, const std::string& file) {
  NcclLog log;
  Json json = Json::parse(text.begin(), text.end(), nullptr, false);
  if (json.is_discarded()) {
    std::optional<Json> cut = read_cut(text);
    if (!cut) refuse(file, "is no JSON, or cut off before its first result");
    json = std::move(*cut);
    log.remarks.push_back({0, "the file is cut off: results up to there"});
  }
  if (!json.is_object() || !json.contains("results") || !json.at("results").is_array()) refuse(file, "has no list of results");
  log.nccl_version = printable(word_of(json, "nccl_version"));
  NcclRun& run = log.runs.emplace_back();
  note_arguments(json, run);
  note_config(json, run);
  int number = 0;
  for (const Json& result : json.at("results")) {
    ++number;
    const auto drop = [&](const char* why) { log.remarks.push_back({0, fmt::format("result {}: {}", number, why)}); };
    const auto size = result.is_object() ? whole_of(result, "size") : std::nullopt;
    const auto count = result.is_object() ? whole_of(result, "count") : std::nullopt;
    const auto timing = result.is_object() ? timing_of(result, "out_of_place") : std::nullopt;
    if (!size || !count || *size < 0 || *count < 0) {
      drop("no size or count");
      continue;
    }
    if (!timing) {
      drop("no times");
      continue;
    }
    log.rows.push_back({.run = 0, .line = 0, .size = *size, .count = *count, .dtype = printable(word_of(result, "type")), .redop = printable(word_of(result, "redop")),
                        .root = word_of(result, "root"), .out_of_place = *timing, .in_place = timing_of(result, "in_place")});
  }
  if (log.rows.empty()) refuse(file, "has no result that can be read", log.remarks.empty() ? "" : log.remarks.front().text);
  return log;
}

}  // namespace stepcast::calibration
