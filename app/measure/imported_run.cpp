#include "app/measure/imported_run.hpp"

#include <algorithm>
#include <filesystem>
#include <numeric>

#include <fmt/format.h>

#include "app/cli/command_line.hpp"
#include "app/cli/terminal.hpp"
#include "app/forecast/forecast_store.hpp"
#include "calibration/json_stream.hpp"
#include "sim/base/text.hpp"

namespace stepcast::app {
namespace {

namespace cal = calibration;
using Json = nlohmann::ordered_json;

std::string line(const char* name, const std::string& value) { return fmt::format("  {:<13} {}\n", name, value); }

Json or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

// Names of files may be any bytes; JSON is UTF-8.
std::string printable_name(const std::string& file) { return cal::printable(std::filesystem::path{file}.filename().string()); }

double seconds(std::int64_t ns) { return static_cast<double>(ns) * 1e-9; }

// Requires: not empty.
std::int64_t median(std::vector<std::int64_t> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::vector<std::int64_t> step_durations(const cal::GpuTrace& trace) {
  std::vector<std::int64_t> result;
  for (const cal::GpuEvent& step : trace.steps()) result.push_back(step.duration_ns);
  return result;
}

template <class Skipped>
std::string remarks_text(const Skipped& skipped, const std::vector<std::string>& notes) {
  std::string text;
  if (!skipped.empty()) {
    text += "skipped\n";
    for (const auto& [reason, count] : skipped) text += fmt::format("  {:>9}  {}\n", count, reason);
  }
  for (const std::string& note : notes) text += fmt::format("note: {}\n", note);
  return text;
}

Json skipped_json(const std::map<std::string, std::size_t>& skipped) {
  Json json = Json::object();
  for (const auto& [reason, count] : skipped) json[reason] = count;
  return json;
}

std::string collectives_text(const cal::GpuTrace& trace) {
  // By collective, type and ranks: sizes as a range.
  struct Sum {
    std::size_t count = 0;
    std::int64_t least = -1;
    std::int64_t most = -1;
    std::int64_t time_ns = 0;
  };
  std::map<std::string, Sum> sums;
  for (const auto& [key, durations] : trace.collectives) {
    Sum& sum = sums[fmt::format("{}{}{}", key.collective, key.dtype.empty() ? "" : " " + key.dtype, key.ranks > 0 ? fmt::format(" of {}", key.ranks) : "")];
    sum.count += durations.size();
    sum.time_ns += std::accumulate(durations.begin(), durations.end(), std::int64_t{0});
    if (key.bytes >= 0) {
      sum.least = sum.least < 0 ? key.bytes : std::min(sum.least, key.bytes);
      sum.most = std::max(sum.most, key.bytes);
    }
  }
  std::string text;
  for (const auto& [name, sum] : sums) {
    const std::string size = sum.least < 0 ? "size not told" : sum.least == sum.most ? human_bytes(Bytes{sum.least}) : human_bytes(Bytes{sum.least}) + " to " + human_bytes(Bytes{sum.most});
    text += line(text.empty() ? "collectives" : "", fmt::format("{:<28} {:>6} x  {}, {} in all", name, sum.count, size, human_seconds(seconds(sum.time_ns))));
  }
  return text;
}

std::string launches_text(const cal::LaunchTimes& launches) {
  if (launches.calls == 0) return "";
  std::string text = fmt::format("{} calls", launches.calls);
  if (launches.call_s) text += fmt::format(" of {}", human_seconds(*launches.call_s));
  if (launches.latency_s) text += fmt::format(", {} from call to start on an idle stream", human_seconds(*launches.latency_s));
  if (launches.gap_s) text += fmt::format(", {} between kernels that were queued", human_seconds(*launches.gap_s));
  return line("launches", wrap(text + " (medians)", 84, std::string(16, ' ')));
}

double mean_of(const trace::Counter& counter) {
  double sum = 0.0;
  for (const auto& sample : counter.samples) sum += sample.value;
  return sum / static_cast<double>(counter.samples.size());
}

}  // namespace

std::string run_name_of(const std::string& file) {
  std::filesystem::path name = std::filesystem::path{file}.filename();
  if (name.extension() == ".gz") name = name.stem();
  return cal::printable(name.has_stem() ? name.stem().string() : name.string());
}

std::string trace_text(const cal::GpuTrace& trace) {
  std::string text = trace.tool;
  for (const auto& [key, value] : trace.facts) {
    if (key != "bytes") text += fmt::format(", {} {}", key, value);
  }
  text += '\n';
  text += line("GPUs", trace.gpus.empty() ? "not named" : join(trace.gpus, ", "));
  std::vector<std::string> workers;
  for (const auto& [worker, label] : trace.workers) workers.push_back(label);
  text += line("workers", wrap(join(workers, ", "), 84, std::string(16, ' ')));
  text += line("streams", wrap(join(trace.streams, ", "), 84, std::string(16, ' ')));
  text += line("time", human_seconds(seconds(trace.end_ns())));
  const std::vector<cal::GpuEvent> steps = trace.steps();
  if (steps.empty()) {
    text += line("steps", "none marked");
  } else {
    const std::vector<std::int64_t> durations = step_durations(trace);
    const auto [least, most] = std::minmax_element(durations.begin(), durations.end());
    text += line("steps", fmt::format("{}, {} to {}: median {} ({} to {})", steps.size(), trace.names[steps.front().name], trace.names[steps.back().name],
                                      human_seconds(seconds(median(durations))), human_seconds(seconds(*least)), human_seconds(seconds(*most))));
  }
  const std::map<cal::GpuWork, cal::WorkSum> sums = trace.sums();
  std::int64_t whole = 0;
  std::vector<std::pair<cal::GpuWork, cal::WorkSum>> order;
  for (const auto& [work, sum] : sums) {
    if (work == cal::GpuWork::kStep || work == cal::GpuWork::kAnnotation) continue;
    whole += sum.time_ns;
    order.emplace_back(work, sum);
  }
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.second.time_ns > b.second.time_ns; });
  bool first = true;
  for (const auto& [work, sum] : order) {
    text += line(first ? "work" : "", fmt::format("{:<12} {:>9} x  {:>10}  {:>5.1f} %", cal::name_of(work), sum.count, human_seconds(seconds(sum.time_ns)),
                                                  whole > 0 ? 100.0 * static_cast<double>(sum.time_ns) / static_cast<double>(whole) : 0.0));
    first = false;
  }
  if (const auto ranges = sums.find(cal::GpuWork::kAnnotation); ranges != sums.end()) text += line("ranges", fmt::format("{} named", ranges->second.count));
  text += collectives_text(trace);
  text += launches_text(trace.launches);
  return text + remarks_text(trace.skipped, trace.notes);
}

Json trace_json(const cal::GpuTrace& trace, const std::string& kind, const std::string& file) {
  Json json{{"kind", kind}, {"file", printable_name(file)}, {"fingerprint", trace.fingerprint}, {"tool", trace.tool}};
  json["facts"] = Json::object();
  for (const auto& [key, value] : trace.facts) json["facts"][key] = value;
  json["gpus"] = trace.gpus;
  json["workers"] = Json::object();
  for (const auto& [worker, label] : trace.workers) json["workers"][std::to_string(worker)] = label;
  json["streams"] = trace.streams;
  json["time_s"] = seconds(trace.end_ns());
  const std::vector<std::int64_t> durations = step_durations(trace);
  json["steps"] = durations.size();
  json["step_time_s"] = durations.empty() ? Json(nullptr) : Json(seconds(median(durations)));
  json["work"] = Json::object();
  for (const auto& [work, sum] : trace.sums()) json["work"][cal::name_of(work)] = {{"count", sum.count}, {"time_s", seconds(sum.time_ns)}};
  json["launches"] = {{"calls", trace.launches.calls}, {"call_s", or_null(trace.launches.call_s)}, {"latency_s", or_null(trace.launches.latency_s)}, {"gap_s", or_null(trace.launches.gap_s)}};
  json["collectives"] = Json::array();
  for (const auto& [key, times] : trace.collectives) {
    json["collectives"].push_back({{"collective", key.collective}, {"type", key.dtype}, {"ranks", key.ranks > 0 ? Json(key.ranks) : Json(nullptr)},
                                   {"algorithm", key.algorithm}, {"protocol", key.protocol}, {"bytes", key.bytes >= 0 ? Json(key.bytes) : Json(nullptr)},
                                   {"count", times.size()}, {"least_s", seconds(*std::min_element(times.begin(), times.end()))}, {"median_s", seconds(median(times))}});
  }
  json["skipped"] = skipped_json(trace.skipped);
  json["notes"] = trace.notes;
  return json;
}

trace::Store::Appended store_trace(const cal::GpuTrace& trace, const std::string& kind, const std::string& file, const std::string& database) {
  trace::Run run;
  run.name = run_name_of(file);
  run.origin = "measured";
  run.version = version();
  run.created = utc_now();
  run.results = trace_json(trace, kind, file).dump(-1, ' ', false, Json::error_handler_t::replace);
  const std::vector<std::int64_t> durations = step_durations(trace);
  if (!durations.empty()) {
    const auto [least, most] = std::minmax_element(durations.begin(), durations.end());
    run.metrics = {{"step_time", seconds(median(durations)), "s"}, {"step_time_least", seconds(*least), "s"}, {"step_time_most", seconds(*most), "s"}};
  }
  run.metrics.push_back({"launch_call", trace.launches.call_s, "s"});
  run.metrics.push_back({"launch_latency", trace.launches.latency_s, "s"});
  run.metrics.push_back({"kernel_gap", trace.launches.gap_s, "s"});
  run.recording.streams = trace.streams;
  for (const auto& [worker, label] : trace.workers) run.recording.workers[RankId{worker}] = label;
  std::size_t next = 0;
  return trace::Store{database, trace::Store::Mode::kAppend}.append_file(run, trace.fingerprint, [&](trace::Span& span) {
    if (next == trace.events.size()) return false;
    span = trace.span(trace.events[next++]);
    return true;
  });
}

std::string smi_text(const cal::SmiLog& log) {
  std::string text = fmt::format("nvidia-smi {}\n", log.form);
  text += line("time", fmt::format("{}{}", log.seconds > 0.0 ? human_seconds(log.seconds) : "one moment", log.started.empty() ? "" : (log.seconds > 0.0 ? " from " : ", ") + log.started));
  text += line("rows", std::to_string(log.rows));
  for (const cal::SmiGpu& gpu : log.gpus) {
    const auto name = gpu.facts.find("name");
    text += fmt::format("{}{}\n", gpu.label, name == gpu.facts.end() ? "" : ": " + name->second);
    for (const trace::Counter& counter : gpu.counters) {
      const auto [least, most] = std::minmax_element(counter.samples.begin(), counter.samples.end(), [](const auto& a, const auto& b) { return a.value < b.value; });
      text += fmt::format("  {:<24} {:>8.6g} {:<4} mean, {:g} to {:g}, {} sample{}\n", counter.name, mean_of(counter), counter.unit, least->value, most->value, counter.samples.size(),
                          counter.samples.size() == 1 ? "" : "s");
    }
  }
  if (log.throttle_samples > 0) {
    text += fmt::format("throttle reasons in {} samples\n", log.throttle_samples);
    if (log.throttled.empty()) text += "  none\n";
    for (const auto& [reason, count] : log.throttled) text += fmt::format("  {:<24} {:>6.1f} %\n", reason, 100.0 * static_cast<double>(count) / static_cast<double>(log.throttle_samples));
  }
  return text + remarks_text(log.skipped, log.notes);
}

Json smi_json(const cal::SmiLog& log, const std::string& file, const std::string& fingerprint) {
  Json json{{"kind", "nvidia-smi"}, {"file", printable_name(file)}, {"fingerprint", fingerprint}, {"form", log.form}};
  json["started"] = log.started.empty() ? Json(nullptr) : Json(log.started);
  json["time_s"] = log.seconds;
  json["rows"] = log.rows;
  json["gpus"] = Json::array();
  for (const cal::SmiGpu& gpu : log.gpus) {
    Json entry{{"gpu", gpu.label}, {"facts", Json::object()}, {"counters", Json::array()}};
    for (const auto& [key, value] : gpu.facts) entry["facts"][key] = value;
    for (const trace::Counter& counter : gpu.counters) {
      const auto [least, most] = std::minmax_element(counter.samples.begin(), counter.samples.end(), [](const auto& a, const auto& b) { return a.value < b.value; });
      entry["counters"].push_back({{"name", counter.name}, {"unit", counter.unit}, {"samples", counter.samples.size()}, {"mean", mean_of(counter)}, {"least", least->value}, {"most", most->value}});
    }
    json["gpus"].push_back(std::move(entry));
  }
  json["throttle_samples"] = log.throttle_samples;
  json["throttled"] = skipped_json(log.throttled);
  json["skipped"] = skipped_json(log.skipped);
  json["notes"] = log.notes;
  return json;
}

trace::Store::Appended store_smi(const cal::SmiLog& log, const std::string& file, const std::string& fingerprint, const std::string& database) {
  trace::Run run;
  run.name = run_name_of(file);
  run.origin = "measured";
  run.version = version();
  run.created = utc_now();
  run.results = smi_json(log, file, fingerprint).dump(-1, ' ', false, Json::error_handler_t::replace);
  for (std::size_t g = 0; g < log.gpus.size(); ++g) {
    const cal::SmiGpu& gpu = log.gpus[g];
    const auto name = gpu.facts.find("name");
    run.recording.workers[RankId{g}] = name == gpu.facts.end() ? gpu.label : gpu.label + " " + name->second;
    for (const trace::Counter& counter : gpu.counters) run.recording.counters.push_back(counter);
  }
  return trace::Store{database, trace::Store::Mode::kAppend}.append_file(run, fingerprint);
}

}  // namespace stepcast::app
