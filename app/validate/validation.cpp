#include "app/validate/validation.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <variant>

#include <fmt/format.h>

#include "app/validate/instruction_names.hpp"
#include "executor/common/device.hpp"
#include "sim/base/check.hpp"
#include "sim/base/diagnostic.hpp"
#include "sim/run/spans.hpp"

namespace stepcast::app {
namespace {

constexpr std::size_t kWorst = 10;

// Which instruction a span is, but for how often it came before.
struct SpanKey {
  RankId worker;
  std::string stream;
  std::string name;
  std::string category;
  std::optional<std::uint16_t> layer, micro_batch;
  friend auto operator<=>(const SpanKey&, const SpanKey&) = default;
};

std::string stream_name(const trace::Recording& recording, const trace::Span& span) {
  return span.stream < recording.streams.size() ? recording.streams[span.stream] : fmt::format("stream {}", span.stream);
}

// Those that have spans: a folded simulation records its representatives alone.
std::set<RankId> workers_of(const trace::Recording& recording) {
  std::set<RankId> workers;
  for (const trace::Span& span : recording.spans) workers.insert(span.worker);
  return workers;
}

// The spans of each key, by time.
using SpansByKey = std::map<SpanKey, std::vector<const trace::Span*>>;
SpansByKey by_key(const trace::Recording& recording) {
  SpansByKey result;
  for (const trace::Span& span : recording.spans) {
    result[{span.worker, stream_name(recording, span), span.name, span.category, span.layer, span.micro_batch}].push_back(&span);
  }
  for (auto& [key, spans] : result) {
    std::stable_sort(spans.begin(), spans.end(), [](const trace::Span* a, const trace::Span* b) { return a->start < b->start; });
  }
  return result;
}

std::string work_of(const plan::Program& program, const plan::Instruction& instruction) {
  const auto* compute = std::get_if<plan::Compute>(&instruction.body);
  return instruction_name(instruction.body, compute == nullptr ? "" : plan::name_of(program.kernels[compute->kernel.index()].op));
}

struct Times {
  TimePoint begin, end;
  [[nodiscard]] Duration duration() const { return end > begin ? end - begin : Duration{}; }
};

// An instruction of a worker, with its times where both sides have it.
struct Aligned {
  RankId worker;
  const plan::Program* program = nullptr;
  std::uint32_t index = 0;
  std::optional<Times> forecast, measured;
  [[nodiscard]] const plan::Instruction& instruction() const { return program->instructions[index]; }
  [[nodiscard]] const plan::Stream& stream() const { return program->streams[instruction().stream.index()]; }
  [[nodiscard]] bool both() const { return forecast && measured; }
};

std::optional<Times> times_of(const SpansByKey& spans, const SpanKey& key, std::size_t occurrence) {
  const auto at = spans.find(key);
  if (at == spans.end() || occurrence >= at->second.size()) return std::nullopt;
  const trace::Span& span = *at->second[occurrence];
  return Times{span.start, span.start + span.duration};
}

std::vector<Aligned> align(const plan::Plan& plan, const std::vector<RankId>& workers, const trace::Recording& forecast, const trace::Recording& measured) {
  const SpansByKey forecast_spans = by_key(forecast);
  const SpansByKey measured_spans = by_key(measured);
  std::vector<Aligned> result;
  for (const RankId worker : workers) {
    const plan::Program& program = plan.program(worker);
    std::map<SpanKey, std::size_t> seen;
    for (std::uint32_t i = 0; i < program.instructions.size(); ++i) {
      const plan::Instruction& instruction = program.instructions[i];
      if (!executor::takes_time(instruction.body)) continue;
      const SpanKey key{worker, program.streams[instruction.stream.index()].name, program.labels[instruction.label.index()], plan::name_of(instruction.stage), instruction.layer,
                        instruction.micro_batch};
      const std::size_t occurrence = seen[key]++;
      result.push_back({worker, &program, i, times_of(forecast_spans, key, occurrence), times_of(measured_spans, key, occurrence)});
    }
  }
  return result;
}

// A message begins when both sides are there. Pairs are the n-th send from one worker to another and the n-th receive there.
void begin_messages_together(const plan::Plan& plan, std::vector<Aligned>& aligned) {
  std::map<std::pair<RankId, RankId>, std::pair<std::vector<Aligned*>, std::vector<Aligned*>>> messages;  // sender, receiver
  for (Aligned& a : aligned) {
    if (const auto* send = std::get_if<plan::Send>(&a.instruction().body)) messages[{a.worker, plan.peer(a.worker, send->peer_stage)}].first.push_back(&a);
    if (const auto* recv = std::get_if<plan::Recv>(&a.instruction().body)) messages[{plan.peer(a.worker, recv->peer_stage), a.worker}].second.push_back(&a);
  }
  for (auto& [ends, sides] : messages) {
    for (std::size_t i = 0; i < std::min(sides.first.size(), sides.second.size()); ++i) {
      Aligned& send = *sides.first[i];
      Aligned& recv = *sides.second[i];
      for (auto side : {&Aligned::forecast, &Aligned::measured}) {
        if (!(send.*side) || !(recv.*side)) continue;
        const TimePoint begin = std::max((send.*side)->begin, (recv.*side)->begin);
        (send.*side)->begin = std::min(begin, (send.*side)->end);
        (recv.*side)->begin = std::min(begin, (recv.*side)->end);
      }
    }
  }
}

// Sums of groups by name, in picoseconds over all workers.
class Groups {
 public:
  void add(const std::string& name, Duration forecast, Duration measured) {
    Sum& sum = sums_[name];
    ++sum.count;
    sum.forecast += forecast.seconds();
    sum.measured += measured.seconds();
    sum.apart += std::abs(forecast.seconds() - measured.seconds());
  }
  // Most measured time first.
  [[nodiscard]] std::vector<ValidationRow> rows(std::size_t workers) const {
    std::vector<ValidationRow> rows;
    const auto n = static_cast<double>(workers);
    for (const auto& [name, sum] : sums_) {
      rows.push_back({.name = name, .count = sum.count, .measured_count = {}, .forecast_s = sum.forecast / n, .measured_s = sum.measured / n,
                      .absolute = sum.measured > 0.0 ? std::optional{sum.apart / sum.measured} : std::nullopt});
    }
    std::stable_sort(rows.begin(), rows.end(), [](const ValidationRow& a, const ValidationRow& b) { return a.measured_s > b.measured_s; });
    return rows;
  }

 private:
  struct Sum {
    std::size_t count = 0;
    double forecast = 0.0, measured = 0.0, apart = 0.0;
  };
  std::map<std::string, Sum> sums_;
};

enum class Phase : std::uint8_t { kInput, kForward, kRecompute, kBackward, kOptimizer, kCommunication, kWait };
constexpr std::array kPhases{"input", "forward", "recompute", "backward", "optimizer", "communication", "wait"};

Phase phase_of(const plan::Instruction& instruction) {
  const plan::Body& body = instruction.body;
  if (std::holds_alternative<plan::Collective>(body) || std::holds_alternative<plan::Send>(body) || std::holds_alternative<plan::Recv>(body)) return Phase::kCommunication;
  switch (instruction.stage) {
    case plan::Stage::kInput: return Phase::kInput;
    case plan::Stage::kForward: return Phase::kForward;
    case plan::Stage::kRecompute: return Phase::kRecompute;
    case plan::Stage::kBackward:
    case plan::Stage::kWeightGradient: return Phase::kBackward;
    case plan::Stage::kGradientSync:  // casts and sums around the collectives
    case plan::Stage::kOptimizer: return Phase::kOptimizer;
  }
  return Phase::kForward;
}

void add_phases(Validation& validation, const std::vector<Aligned>& aligned) {
  struct Sum {
    std::size_t count = 0;
    double forecast = 0.0, measured = 0.0, apart = 0.0;
  };
  std::array<Sum, kPhases.size()> sums{};
  Sum beside;
  for (const Aligned& a : aligned) {
    if (!a.both()) continue;
    const bool compute = a.stream().kind == plan::StreamKind::kCompute;
    if (!compute && phase_of(a.instruction()) != Phase::kCommunication) continue;  // copies and host work beside
    Sum& sum = compute ? sums[static_cast<std::size_t>(phase_of(a.instruction()))] : beside;
    ++sum.count;
    sum.forecast += a.forecast->duration().seconds();
    sum.measured += a.measured->duration().seconds();
    sum.apart += std::abs(a.forecast->duration().seconds() - a.measured->duration().seconds());
  }
  const auto n = static_cast<double>(validation.workers);
  Sum& wait = sums[static_cast<std::size_t>(Phase::kWait)];
  wait.forecast = n * validation.forecast_step_s;
  wait.measured = n * validation.measured_step_s;
  for (std::size_t p = 0; p < static_cast<std::size_t>(Phase::kWait); ++p) {
    wait.forecast -= sums[p].forecast;
    wait.measured -= sums[p].measured;
  }
  const auto row = [&](const char* name, const Sum& sum) {
    return ValidationRow{.name = name, .count = sum.count, .measured_count = {}, .forecast_s = sum.forecast / n, .measured_s = sum.measured / n,
                         .absolute = sum.count > 0 && sum.measured > 0.0 ? std::optional{sum.apart / sum.measured} : std::nullopt};
  };
  for (std::size_t p = 0; p < kPhases.size(); ++p) {
    if (sums[p].count > 0 || p == static_cast<std::size_t>(Phase::kWait)) validation.by_phase.push_back(row(kPhases[p], sums[p]));
  }
  if (beside.count > 0) validation.beside.push_back(row("communication beside the compute stream", beside));
}

void keep_worst(Validation& validation, std::vector<ComparedInstruction>&& compared) {
  const auto larger = [](const ComparedInstruction& a, const ComparedInstruction& b) { return std::abs(a.difference_s()) > std::abs(b.difference_s()); };
  std::stable_sort(compared.begin(), compared.end(), larger);
  compared.resize(std::min(compared.size(), kWorst));
  validation.worst = std::move(compared);
}

// Forecast workers first, then as many measured ones.
trace::Recording beside_each_other(const std::string& name, const trace::Recording& forecast, const trace::Recording& measured) {
  trace::Recording both{.name = name, .origin = "forecast and measured", .streams = {}, .workers = {}, .spans = {}, .counters = {}};
  std::uint32_t first = 0;
  const auto stream_of = [&](const std::string& text) {
    const auto at = std::find(both.streams.begin(), both.streams.end(), text);
    if (at != both.streams.end() || both.streams.size() == 255) return static_cast<std::uint8_t>(std::min<std::ptrdiff_t>(at - both.streams.begin(), 254));
    both.streams.push_back(text);
    return static_cast<std::uint8_t>(both.streams.size() - 1);
  };
  for (const auto& [origin, recording] : {std::pair{"forecast", &forecast}, std::pair{"measured", &measured}}) {
    std::uint32_t next = first;
    std::map<RankId, RankId> moved;
    const auto worker_of = [&](RankId rank) {
      const auto [at, added] = moved.try_emplace(rank, RankId{next});
      if (added) {
        ++next;
        const auto label = recording->workers.find(rank);
        both.workers[at->second] = fmt::format("{}: {}", origin, label == recording->workers.end() ? fmt::format("rank {}", rank.value()) : label->second);
      }
      return at->second;
    };
    for (const RankId rank : workers_of(*recording)) worker_of(rank);
    for (trace::Span span : recording->spans) {
      span.stream = stream_of(stream_name(*recording, span));
      span.worker = worker_of(span.worker);
      both.spans.push_back(std::move(span));
    }
    for (trace::Counter counter : recording->counters) {
      if (!counter.worker || !moved.contains(*counter.worker)) continue;
      counter.worker = worker_of(*counter.worker);
      both.counters.push_back(std::move(counter));
    }
    first = next;
  }
  run::sort_spans(both.spans);
  return both;
}

// --- profiles ---

// The same words for kernels of a profile and instructions of a plan. NCCL's all-to-all is sends and receives.
std::string class_of(const plan::Program& program, const plan::Instruction& instruction) {
  const plan::Body& body = instruction.body;
  if (const auto* c = std::get_if<plan::Collective>(&body)) {
    const bool pairs = c->kind == plan::CollectiveKind::kAllToAll || c->kind == plan::CollectiveKind::kSendReceive;
    return pairs ? "send and receive" : plan::name_of(c->kind);
  }
  if (std::holds_alternative<plan::Send>(body) || std::holds_alternative<plan::Recv>(body)) return "send and receive";
  if (std::holds_alternative<plan::Copy>(body)) return "copy";
  return work_of(program, instruction);
}

std::string class_of(const trace::Span& span) {
  if (span.category != "collective") return span.category;
  const std::string word = span.name.substr(0, span.name.find(' '));
  return word == "send_recv" || word == "send" || word == "recv" || word == "all_to_all" ? "send and receive" : word;
}

// The marked step whose duration is the median.
const trace::Span& median_step(const trace::Recording& measured) {
  std::vector<const trace::Span*> steps;
  for (const trace::Span& span : measured.spans) {
    if (span.category == "step" && span.duration > Duration{}) steps.push_back(&span);
  }
  if (steps.empty()) {
    throw UserError(Diagnostic{.problem = "the profile marks no steps, so that nothing says which kernels are one", .hint = "call prof.step() after each step, or name NVTX ranges 'step 12'"});
  }
  std::stable_sort(steps.begin(), steps.end(), [](const trace::Span* a, const trace::Span* b) { return a->duration < b->duration; });
  return *steps[steps.size() / 2];
}

// The worker itself, or one of the same program, or the first.
RankId counterpart(const plan::Plan& plan, const std::set<RankId>& simulated, RankId wanted) {
  SIM_CHECK(!simulated.empty(), plan.name);
  if (simulated.contains(wanted)) return wanted;
  if (wanted.value() < static_cast<std::uint32_t>(plan.world_size())) {
    for (const RankId rank : simulated) {
      if (&plan.program(rank) == &plan.program(wanted)) return rank;
    }
  }
  return *simulated.begin();
}

}  // namespace

std::optional<double> ValidationRow::signed_error() const {
  if (measured_s <= 0.0) return std::nullopt;
  return forecast_s / measured_s - 1.0;
}

Validation validate_run(const plan::Plan& plan, double forecast_step_s, const trace::Recording& forecast, double measured_step_s, const trace::Recording& measured) {
  SIM_CHECK(measured_step_s > 0.0, measured_step_s);
  Validation v{.name = plan.name, .exact = true, .forecast_step_s = forecast_step_s, .measured_step_s = measured_step_s};
  const std::set<RankId> measured_workers = workers_of(measured);
  std::vector<RankId> workers;
  for (const RankId rank : workers_of(forecast)) {
    if (measured_workers.contains(rank)) workers.push_back(rank);
  }
  std::vector<Aligned> aligned = align(plan, workers, forecast, measured);
  begin_messages_together(plan, aligned);
  v.workers = workers.size();
  Groups classes;
  Groups streams;
  std::vector<ComparedInstruction> compared;
  for (const Aligned& a : aligned) {
    if (a.forecast) ++v.forecast_count;
    if (a.measured) ++v.measured_count;
    if (!a.both()) continue;
    ++v.matched;
    const plan::Instruction& i = a.instruction();
    const std::string work = work_of(*a.program, i);
    classes.add(work, a.forecast->duration(), a.measured->duration());
    streams.add(a.stream().name, a.forecast->duration(), a.measured->duration());
    compared.push_back({a.worker, a.stream().name, a.program->labels[i.label.index()], work, plan::name_of(i.stage), i.layer, i.micro_batch, a.forecast->duration(), a.measured->duration()});
  }
  if (v.matched > 0) {
    v.by_class = classes.rows(v.workers);
    v.by_stream = streams.rows(v.workers);
    add_phases(v, aligned);
  }
  if (measured_workers.size() > workers.size()) {
    v.notes.push_back(fmt::format("{} of {} measured workers are compared: the others were not simulated one by one", workers.size(), measured_workers.size()));
  }
  keep_worst(v, std::move(compared));
  v.side_by_side = beside_each_other(plan.name, forecast, measured);
  return v;
}

Validation validate_profile(const plan::Plan& plan, double forecast_step_s, const trace::Recording& forecast, const trace::Recording& measured) {
  const trace::Span& step = median_step(measured);
  const TimePoint end = step.start + step.duration;
  Validation v{.name = plan.name, .exact = false, .forecast_step_s = forecast_step_s, .measured_step_s = step.duration.seconds()};
  v.workers = 1;
  const RankId worker = counterpart(plan, workers_of(forecast), step.worker);
  if (worker != step.worker) v.notes.push_back(fmt::format("the profile's worker {} is compared with worker {} of the forecast", step.worker.value(), worker.value()));
  v.notes.push_back(fmt::format("the profile's step is {}", step.name));

  struct Sides {
    std::vector<ComparedInstruction> forecast;
    std::vector<Duration> measured;
  };
  std::map<std::string, Sides> classes;
  const plan::Program& program = plan.program(worker);
  trace::Recording one_forecast = forecast;
  std::erase_if(one_forecast.spans, [&](const trace::Span& s) { return s.worker != worker; });
  for (const Aligned& a : align(plan, {worker}, one_forecast, {})) {
    if (!a.forecast) continue;
    const plan::Instruction& i = a.instruction();
    const std::string work = class_of(program, i);
    ++v.forecast_count;
    classes[work].forecast.push_back({worker, a.stream().name, program.labels[i.label.index()], work, plan::name_of(i.stage), i.layer, i.micro_batch, a.forecast->duration(), {}});
  }
  trace::Recording one_step{.name = measured.name, .origin = measured.origin, .streams = measured.streams, .workers = {}, .spans = {}, .counters = {}};
  if (const auto label = measured.workers.find(step.worker); label != measured.workers.end()) one_step.workers[step.worker] = label->second;
  for (trace::Span span : measured.spans) {
    if (span.worker != step.worker || span.start < step.start || span.start >= end) continue;
    span.start = TimePoint::at(span.start - step.start);
    one_step.spans.push_back(span);
  }
  run::sort_spans(one_step.spans);
  std::vector<const trace::Span*> in_order;
  for (const trace::Span& span : one_step.spans) {
    if (span.category != "step" && span.category != "annotation") in_order.push_back(&span);
  }
  std::stable_sort(in_order.begin(), in_order.end(), [](const trace::Span* a, const trace::Span* b) { return a->start < b->start; });
  for (const trace::Span* span : in_order) classes[class_of(*span)].measured.push_back(span->duration);
  v.measured_count = in_order.size();
  if (in_order.empty()) throw UserError(Diagnostic{.problem = "the profile's step " + step.name + " holds no work of a GPU"});

  std::vector<ComparedInstruction> compared;
  for (auto& [work, sides] : classes) {
    ValidationRow row{.name = work, .count = sides.forecast.size(), .measured_count = {}, .forecast_s = 0.0, .measured_s = 0.0, .absolute = {}};
    for (const ComparedInstruction& c : sides.forecast) row.forecast_s += c.forecast.seconds();
    for (const Duration d : sides.measured) row.measured_s += d.seconds();
    if (sides.forecast.size() == sides.measured.size()) {
      double apart = 0.0;
      for (std::size_t i = 0; i < sides.measured.size(); ++i) {
        sides.forecast[i].measured = sides.measured[i];
        apart += std::abs(sides.forecast[i].difference_s());
        compared.push_back(sides.forecast[i]);
      }
      v.matched += sides.measured.size();
      if (row.measured_s > 0.0) row.absolute = apart / row.measured_s;
    } else {
      row.measured_count = sides.measured.size();
    }
    v.by_class.push_back(std::move(row));
  }
  std::stable_sort(v.by_class.begin(), v.by_class.end(), [](const ValidationRow& a, const ValidationRow& b) { return a.measured_s > b.measured_s; });
  keep_worst(v, std::move(compared));
  std::erase_if(one_forecast.counters, [&](const trace::Counter& c) { return c.worker != worker; });
  v.side_by_side = beside_each_other(plan.name, one_forecast, one_step);
  return v;
}

}  // namespace stepcast::app
