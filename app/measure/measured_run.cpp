#include "app/measure/measured_run.hpp"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <optional>

#include <fmt/format.h>

#include "app/cli/command_line.hpp"
#include "app/validate/instruction_names.hpp"
#include "sim/base/diagnostic.hpp"
#include "sim/base/text.hpp"
#include "sim/run/spans.hpp"

namespace stepcast::app {
namespace {

using executor::Records;
using executor::StepRecord;

constexpr std::int64_t kPicoseconds = 1000;  // in a nanosecond

Duration nanoseconds(std::int64_t count) { return Duration::picoseconds(std::max<std::int64_t>(0, count) * kPicoseconds); }

std::int64_t number(const std::string& text) {
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// First begin and last end of a step over all workers.
executor::Interval extent(const std::vector<Records>& records, std::size_t step) {
  executor::Interval all = records.front().steps[step].time;
  for (const Records& r : records) {
    all.begin = std::min(all.begin, r.steps[step].time.begin);
    all.end = std::max(all.end, r.steps[step].time.end);
  }
  return all;
}

// Replicas each have their share of the mean.
std::optional<double> loss_of(const std::vector<Records>& records, std::size_t step) {
  std::optional<double> sum;
  for (const Records& r : records) {
    for (const auto& [name, value] : r.steps[step].values) {
      if (name == "loss") sum = sum.value_or(0.0) + value;
    }
  }
  return sum;
}

void check_complete(const std::vector<Records>& records) {
  for (std::size_t rank = 0; rank < records.size(); ++rank) {
    const Records& r = records[rank];
    const auto refuse = [&](const std::string& problem) { throw UserError(fmt::format("records of rank {}: {}", rank, problem)); };
    if (r.steps.empty()) refuse("no step was recorded");
    if (r.steps.size() != records.front().steps.size()) refuse(fmt::format("{} steps, rank 0 has {}", r.steps.size(), records.front().steps.size()));
    if (r.fact("plan") != records.front().fact("plan")) refuse("of another plan than rank 0's");
  }
}

std::vector<MeasuredPart> parts_of(const plan::Program& program, const StepRecord& step, Duration whole) {
  std::vector<MeasuredPart> parts;
  Duration busy;
  for (const executor::InstructionTime& t : step.instructions) {
    const plan::Instruction& i = program.instructions[t.instruction];
    if (program.streams[i.stream.index()].kind != plan::StreamKind::kCompute) continue;
    const std::string name = i.stage == plan::Stage::kOptimizer && std::holds_alternative<plan::Compute>(i.body) ? "optimizer" : instruction_name(i.body, "compute");
    auto it = std::find_if(parts.begin(), parts.end(), [&](const MeasuredPart& p) { return p.name == name; });
    if (it == parts.end()) it = parts.insert(parts.end(), {name, Duration{}});
    const Duration time = nanoseconds(t.time.end - t.time.begin);
    it->time += time;
    busy += time;
  }
  std::stable_sort(parts.begin(), parts.end(), [](const MeasuredPart& a, const MeasuredPart& b) { return a.time > b.time; });
  if (whole > busy) parts.push_back({"waiting for other streams", whole - busy});
  return parts;
}

trace::Recording recording_of(const plan::Plan& plan, const std::vector<Records>& records, std::size_t step) {
  trace::Recording recording{.name = plan.name, .origin = "measured", .streams = {}, .workers = {}, .spans = {}, .counters = {}};
  const executor::Interval all = extent(records, step);
  for (std::uint32_t r = 0; r < records.size(); ++r) {
    const RankId rank{r};
    recording.workers[rank] = run::worker_label(plan, rank);
    const StepRecord& s = records[r].steps[step];
    for (const executor::InstructionTime& t : s.instructions) {
      const Duration start = nanoseconds(s.time.begin - all.begin + t.time.begin);
      recording.spans.push_back(run::span_of(plan, rank, t.instruction, TimePoint::at(start), nanoseconds(t.time.end - t.time.begin), recording.streams));
    }
  }
  run::sort_spans(recording.spans);
  return recording;
}

double per_second(std::int64_t count, Duration step) { return static_cast<double>(count) / step.seconds(); }

}  // namespace

MeasuredRun measured_run(const plan::Plan& plan, const std::string& backend, const std::vector<Records>& records) {
  check_complete(records);
  MeasuredRun run;
  run.name = plan.name;
  run.backend = backend;
  run.facts = records.front().facts;
  for (std::size_t s = 0; s < records.front().steps.size(); ++s) {
    const executor::Interval all = extent(records, s);
    run.steps.push_back(nanoseconds(all.end - all.begin));
    if (const auto loss = loss_of(records, s)) run.losses.push_back(*loss);
  }
  std::vector<std::size_t> order(run.steps.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return std::pair{run.steps[a], a} < std::pair{run.steps[b], b}; });
  run.median = order[order.size() / 2];
  for (std::uint32_t r = 1; r < records.size(); ++r) {
    if (records[r].steps[run.median].time.end > records[run.last.index()].steps[run.median].time.end) run.last = RankId{r};
  }
  run.parts = parts_of(plan.program(run.last), records[run.last.index()].steps[run.median], run.step());
  for (const Records& r : records) {
    run.peak_memory = std::max(run.peak_memory, Bytes{number(r.fact("peak_memory_bytes"))});
    if (const std::string host = r.fact("host"); std::find(run.hosts.begin(), run.hosts.end(), host) == run.hosts.end()) run.hosts.push_back(host);
  }
  run.recording = recording_of(plan, records, run.median);
  return run;
}

std::string measured_text(const MeasuredRun& run, const plan::Plan& plan, const Terminal& terminal) {
  const auto fact = [&](const char* key) {
    const auto it = std::find_if(run.facts.begin(), run.facts.end(), [&](const auto& f) { return f.first == key; });
    return it == run.facts.end() ? std::string{} : it->second;
  };
  const auto line = [](const char* name, const std::string& value) { return fmt::format("  {:<14}{}\n", name, value); };
  const auto [least, most] = std::minmax_element(run.steps.begin(), run.steps.end());
  std::string text = paint(terminal, Tone::kStrong, run.name) + '\n';
  const std::string where = fact("gpu").empty() ? fmt::format("{}, {} cores", fact("cpu"), fact("cores")) : fmt::format("{}, driver {}", fact("gpu"), fact("driver"));
  text += line("backend", fmt::format("{}: {} worker{} on {} host{} ({}), {} thread{} each", run.backend, plan.world_size(), plan.world_size() == 1 ? "" : "s",
                                      run.hosts.size(), run.hosts.size() == 1 ? "" : "s", where, fact("threads"), fact("threads") == "1" ? "" : "s"));
  text += line("messages", fact("nccl").empty() ? fmt::format("{}, {} collectives", fact("mpi"), fact("collectives")) : fmt::format("NCCL {}", fact("nccl")));
  if (const std::string attention = fact("attention"); !attention.empty()) text += line("attention", wrap(attention, 84, std::string(16, ' ')));
  text += line("data", fact("data"));
  if (const std::string factor = fact("shrink"); factor != "1" && !factor.empty()) text += line("shrunk", fmt::format("sides of matrices divided by {}: not the plan's own time", factor));
  if (const std::string note = fact("fewer"); !note.empty()) text += line("played", wrap(note, 84, std::string(16, ' ')));
  text += line("step time", fmt::format("{}, median of {} ({} to {})", human_duration(run.step()), run.steps.size(), human_duration(*least), human_duration(*most)));
  if (fact("fewer").empty()) text += line("throughput", fmt::format("{} tokens/s, {:.3g} sequences/s", human_count(per_second(plan.work.tokens, run.step())), per_second(plan.work.samples, run.step())));
  if (!run.losses.empty()) {
    std::string losses;
    for (const double loss : run.losses) losses += fmt::format("{}{:.4f}", losses.empty() ? "" : ", ", loss);
    text += line("loss", wrap(losses, 84, std::string(16, ' ')));
  }
  text += line("memory", fmt::format("{} in buffers of the fullest worker", human_bytes(run.peak_memory)));
  text += fmt::format("\nWhere the step goes (worker {}, the last to finish)\n", run.last.value());
  for (const MeasuredPart& part : run.parts) {
    const double share = part.time / run.step();
    text += fmt::format("  {:<34}{:>12}  {:>5.1f} %  {}\n", part.name, human_duration(part.time), 100.0 * share, bar(terminal, share, 32));
  }
  return text;
}

nlohmann::ordered_json measured_json(const MeasuredRun& run, const plan::Plan& plan) {
  nlohmann::ordered_json json{{"name", run.name},
                              {"kind", "measured"},
                              {"backend", run.backend},
                              {"workers", plan.world_size()},
                              {"step_time_s", run.step().seconds()},
                              {"steps_s", nlohmann::ordered_json::array()},
                              {"samples_per_s", per_second(plan.work.samples, run.step())},
                              {"tokens_per_s", per_second(plan.work.tokens, run.step())},
                              {"device_memory_peak_bytes", run.peak_memory.count()},
                              {"last_worker", run.last.value()},
                              {"parts_s", nlohmann::ordered_json::object()},
                              {"environment", nlohmann::ordered_json::object()}};
  for (const Duration step : run.steps) json["steps_s"].push_back(step.seconds());
  if (!run.losses.empty()) json["losses"] = run.losses;
  for (const MeasuredPart& part : run.parts) json["parts_s"][part.name] = part.time.seconds();
  for (const auto& [key, value] : run.facts) json["environment"][key] = value;
  return json;
}

trace::Run stored_measurement(const MeasuredRun& run, const plan::Plan& plan, const std::string& scenario, std::uint64_t seed, const std::string& created) {
  trace::Run stored;
  stored.name = run.name;
  stored.origin = "measured";
  stored.scenario = scenario;
  stored.version = version();
  stored.seed = seed;
  stored.created = created;
  stored.results = measured_json(run, plan).dump();
  const auto [least, most] = std::minmax_element(run.steps.begin(), run.steps.end());
  stored.metrics = {{"step_time", run.step().seconds(), "s"},
                    {"step_time_least", least->seconds(), "s"},
                    {"step_time_most", most->seconds(), "s"},
                    {"samples_per_s", per_second(plan.work.samples, run.step()), "1/s"},
                    {"tokens_per_s", per_second(plan.work.tokens, run.step()), "1/s"},
                    {"device_memory_peak", run.peak_memory.si(), "B"}};
  for (const MeasuredPart& part : run.parts) stored.breakdown.push_back({part.name, part.time});
  stored.recording = run.recording;
  return stored;
}

}  // namespace stepcast::app
