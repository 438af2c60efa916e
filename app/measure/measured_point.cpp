#include "app/measure/measured_point.hpp"

#include <algorithm>
#include <map>
#include <variant>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/cli/command_line.hpp"
#include "sim/plan/names.hpp"
#include "sim/run/spans.hpp"

namespace stepcast::app {
namespace {

constexpr std::int64_t kPicoseconds = 1000;  // in a nanosecond

// Samples of a point on one worker: consecutive steps of one first instruction.
using Samples = std::map<std::uint32_t, std::vector<const executor::StepRecord*>>;

Samples samples_of(const executor::Records& records) {
  Samples samples;
  for (const executor::StepRecord& step : records.steps) {
    if (!step.instructions.empty()) samples[step.instructions.front().instruction].push_back(&step);
  }
  return samples;
}

void work_of(const plan::Program& program, const plan::Instruction& i, MeasuredPoint& point) {
  if (const auto* compute = std::get_if<plan::Compute>(&i.body)) {
    const plan::Kernel& kernel = program.kernels[compute->kernel.index()];
    if (kernel.flops.si() > 0.0) point.flops = kernel.flops.si();
    point.bytes = kernel.read.count() + kernel.written.count();
  }
  if (const auto* c = std::get_if<plan::Collective>(&i.body)) point.bytes = c->bytes.count();
  if (const auto* copy = std::get_if<plan::Copy>(&i.body)) point.bytes = copy->bytes.count();
  if (const auto* host = std::get_if<plan::HostCompute>(&i.body)) {
    point.flops = host->flops.si();
    point.bytes = host->bytes.count();
  }
}

nlohmann::ordered_json work_json(const plan::Program& program, const plan::Instruction& i) {
  if (const auto* compute = std::get_if<plan::Compute>(&i.body)) {
    const plan::Kernel& k = program.kernels[compute->kernel.index()];
    nlohmann::ordered_json json{{"op", plan::name_of(k.op)}, {"pass", plan::name_of(k.pass)}, {"dtype", plan::name_of(k.dtype)}};
    if (k.gemm) json.update({{"batch", k.gemm->batch}, {"m", k.gemm->m}, {"n", k.gemm->n}, {"k", k.gemm->k}});
    if (k.attention) {
      const plan::AttentionShape& a = *k.attention;
      json.update({{"batch", a.batch}, {"query_heads", a.query_heads}, {"kv_heads", a.kv_heads}, {"query_length", a.query_length}, {"kv_length", a.kv_length},
                   {"head_dim", a.head_dim}, {"value_dim", a.value_dim}, {"causal", a.causal}});
    }
    json.update({{"flops", k.flops.si()}, {"read_bytes", k.read.count()}, {"written_bytes", k.written.count()}, {"launches", k.launches}});
    return json;
  }
  if (const auto* c = std::get_if<plan::Collective>(&i.body)) return {{"op", plan::name_of(c->kind)}, {"bytes", c->bytes.count()}, {"dtype", plan::name_of(c->dtype)}};
  if (const auto* copy = std::get_if<plan::Copy>(&i.body)) return {{"op", "copy"}, {"kind", plan::name_of(copy->kind)}, {"bytes", copy->bytes.count()}, {"host", plan::name_of(copy->host)}};
  if (const auto* host = std::get_if<plan::HostCompute>(&i.body)) return {{"op", "host_compute"}, {"flops", host->flops.si()}, {"bytes", host->bytes.count()}};
  return {{"op", plan::opcode_of(i.body)}};
}

// Instructions of the point that begins at `first`, runs of equal ones once with "times".
nlohmann::ordered_json work_of_point(const plan::Program& program, std::size_t first) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  std::int64_t times = 0;
  for (std::size_t i = first; i < program.instructions.size() && program.instructions[i].layer == program.instructions[first].layer; ++i) {
    const bool again = i > first && program.instructions[i] == program.instructions[i - 1];
    if (!again) list.push_back(work_json(program, program.instructions[i]));
    times = again ? times + 1 : 1;
    if (times > 1) list.back()["times"] = times;
  }
  return list;
}

}  // namespace

std::vector<PointLeftOut> left_out(const executor::Records& records) {
  constexpr std::string_view kMark = "left out ";
  std::vector<PointLeftOut> list;
  for (const auto& [name, value] : records.facts) {
    if (name.starts_with(kMark)) list.push_back({name.substr(kMark.size()), value});
  }
  return list;
}

std::vector<MeasuredPoint> measured_points(const plan::Plan& plan, const std::vector<executor::Records>& records) {
  std::vector<Samples> of_worker;
  for (const executor::Records& r : records) of_worker.push_back(samples_of(r));
  const plan::Program& program = plan.programs.front();
  std::vector<MeasuredPoint> points;
  for (const auto& [first, samples] : of_worker.front()) {
    const bool complete = std::all_of(of_worker.begin(), of_worker.end(), [&, index = first](const Samples& s) { return s.contains(index); });
    if (!complete) break;
    MeasuredPoint point{.name = program.labels[program.instructions[first].label.index()], .seconds = {}, .spread = {}, .flops = {}, .bytes = {}, .work = work_of_point(program, first), .readings = {}, .recording = {}};
    point.recording.name = point.name;
    point.recording.origin = "measured";
    work_of(program, program.instructions[first], point);
    std::int64_t origin = 0;
    for (std::size_t s = 0; s < samples.size(); ++s) {
      std::int64_t longest = 0;
      for (std::uint32_t r = 0; r < records.size(); ++r) {
        const auto& theirs = of_worker[r].at(first);
        if (s >= theirs.size()) continue;
        const executor::StepRecord& step = *theirs[s];
        point.recording.workers[RankId{r}] = run::worker_label(plan, RankId{r});
        for (const executor::InstructionTime& t : step.instructions) {
          longest = std::max(longest, t.time.end);
          point.recording.spans.push_back(run::span_of(plan, RankId{r}, t.instruction, TimePoint::at(Duration::picoseconds((origin + t.time.begin) * kPicoseconds)),
                                                       Duration::picoseconds((t.time.end - t.time.begin) * kPicoseconds), point.recording.streams));
        }
      }
      for (const auto& [name, value] : samples[s]->values) point.readings[name].push_back(value);
      origin += longest;
      point.seconds.push_back(static_cast<double>(longest) * 1e-9);
    }
    run::sort_spans(point.recording.spans);
    point.spread = executor::spread_of(point.seconds);
    points.push_back(std::move(point));
  }
  return points;
}

std::string point_key(const std::string& backend, const std::string& machine, std::int32_t workers, const std::string& name) {
  return fmt::format("measure {}\nmachine {}\nworkers {}\npoint {}\n", backend, machine, workers, name);
}

trace::Run stored_point(const MeasuredPoint& point, const std::string& key, const executor::Records& first, const std::string& created) {
  nlohmann::ordered_json json{{"kind", "measure"}, {"point", point.name}, {"work", point.work}, {"seconds", point.seconds}, {"readings", point.readings}, {"environment", nlohmann::ordered_json::object()}};
  for (const auto& [name, value] : first.facts) {
    if (!name.starts_with("left out ")) json["environment"][name] = value;
  }
  trace::Run run;
  run.name = point.name;
  run.origin = "measured";
  run.scenario = key;
  run.version = version();
  run.created = created;
  run.results = json.dump();
  run.metrics = {{"time", point.spread.median_s, "s"}, {"spread", point.spread.relative, "1"}, {"samples", static_cast<double>(point.seconds.size()), "1"}};
  if (point.flops) run.metrics.push_back({"flops", *point.flops, "FLOP"});
  if (point.bytes) run.metrics.push_back({"bytes", static_cast<double>(*point.bytes), "B"});
  run.recording = point.recording;
  return run;
}

}  // namespace stepcast::app
