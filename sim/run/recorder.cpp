#include "sim/run/recorder.hpp"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

namespace stepcast::run {
namespace {

std::string worker_label(const plan::Plan& plan, RankId rank) {
  const plan::PerAxis at = plan.coordinates(rank);
  std::string text = fmt::format("rank {}", rank.value());
  for (const plan::Axis axis : {plan::Axis::kData, plan::Axis::kPipeline, plan::Axis::kTensor}) {
    if (plan.degrees[axis] > 1) text += fmt::format(" {} {}", plan::name_of(axis), at[axis]);
  }
  return text;
}

std::optional<std::int64_t> bytes_of(const plan::Body& body) {
  if (const auto* c = std::get_if<plan::Collective>(&body)) return c->bytes.count();
  if (const auto* s = std::get_if<plan::Send>(&body)) return s->bytes.count();
  if (const auto* r = std::get_if<plan::Recv>(&body)) return r->bytes.count();
  return std::nullopt;
}

}  // namespace

Recorder::Recorder(const plan::Plan& plan, const std::vector<RankId>& ranks)
    : plan_{plan}, recorded_(static_cast<std::size_t>(plan.world_size()), false) {
  recording_.name = plan.name;
  recording_.origin = "simulated";
  for (const RankId rank : ranks) {
    SIM_CHECK(rank.index() < recorded_.size(), rank.value());
    recorded_[rank.index()] = true;
    recording_.workers[rank] = worker_label(plan, rank);
  }
  for (const auto& [rank, label] : recording_.workers) {
    slot_[rank] = instruction_end_.size();
    instruction_end_.emplace_back(plan.program(rank).instructions.size());
  }
}

void Recorder::kernels(RankId rank, plan::StreamId stream, const CompiledStream& compiled, const CompiledStep& step,
                       TimePoint free) {
  for (std::uint32_t i = step.first; i < step.first + step.count; ++i) {
    const TimedInstruction& timed = compiled.instructions[i];
    const TimePoint begin = std::max(free, TimePoint::at(timed.issued));
    free = begin + timed.duration;
    add(rank, stream, timed.index, begin, free);
  }
}

void Recorder::transfer(RankId rank, plan::StreamId stream, std::uint32_t instruction, TimePoint begin, TimePoint end) {
  add(rank, stream, instruction, begin, end);
}

void Recorder::add(RankId rank, plan::StreamId stream, std::uint32_t instruction, TimePoint begin, TimePoint end) {
  const plan::Program& program = plan_.program(rank);
  const plan::Instruction& i = program.instructions[instruction];
  trace::Span span{.worker = rank,
                   .stream = track(program.streams[stream.index()].name),
                   .start = begin,
                   .duration = end - begin,
                   .name = program.labels[i.label.index()],
                   .category = plan::name_of(i.stage),
                   .layer = i.layer,
                   .micro_batch = i.micro_batch,
                   .bytes = bytes_of(i.body),
                   .flops = std::nullopt};
  if (const auto* compute = std::get_if<plan::Compute>(&i.body)) {
    const plan::Kernel& kernel = program.kernels[compute->kernel.index()];
    if (kernel.flops.si() > 0.0) span.flops = kernel.flops.si();
  }
  instruction_end_[slot_.at(rank)][instruction] = end;
  recording_.spans.push_back(std::move(span));
}

std::uint8_t Recorder::track(const std::string& stream_name) {
  std::vector<std::string>& streams = recording_.streams;
  const auto index = std::find(streams.begin(), streams.end(), stream_name) - streams.begin();
  if (static_cast<std::size_t>(index) == streams.size()) streams.push_back(stream_name);
  return static_cast<std::uint8_t>(index);
}

// An Alloc or Free takes effect in issue order: it is shown when the work listed before it has ended.
void Recorder::add_memory_counters() {
  for (const auto& [rank, slot] : slot_) {
    const plan::Program& program = plan_.program(rank);
    trace::Counter counter{.name = "device memory", .unit = "GiB", .worker = rank, .samples = {{TimePoint{}, 0.0}}};
    TimePoint now;
    std::int64_t live = 0;
    for (std::size_t i = 0; i < program.instructions.size(); ++i) {
      const plan::Instruction& instruction = program.instructions[i];
      now = std::max(now, instruction_end_[slot][i]);
      const auto* alloc = std::get_if<plan::Alloc>(&instruction.body);
      const auto* free = std::get_if<plan::Free>(&instruction.body);
      if (alloc == nullptr && free == nullptr) continue;
      const plan::Buffer& buffer = program.buffers[(alloc != nullptr ? alloc->buffer : free->buffer).index()];
      if (buffer.memory != plan::Memory::kDevice) continue;
      live += alloc != nullptr ? buffer.size.count() : -buffer.size.count();
      if (counter.samples.back().time == now) counter.samples.pop_back();
      counter.samples.push_back({now, Bytes{live} / Bytes{std::int64_t{1} << 30}});
    }
    recording_.counters.push_back(std::move(counter));
  }
}

trace::Recording Recorder::finish() {
  add_memory_counters();
  std::stable_sort(recording_.spans.begin(), recording_.spans.end(), [](const trace::Span& a, const trace::Span& b) {
    return std::tie(a.worker, a.stream, a.start) < std::tie(b.worker, b.stream, b.start);
  });
  return std::move(recording_);
}

}  // namespace stepcast::run
