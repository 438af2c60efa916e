#include "sim/run/recorder.hpp"

#include <algorithm>

#include "sim/run/spans.hpp"

namespace stepcast::run {

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

void Recorder::kernels(RankId rank, const CompiledStream& compiled, const CompiledStep& step, TimePoint issuing,
                       TimePoint free, Duration busy) {
  const bool drawn_out = busy > step.busy;
  for (std::uint32_t i = step.first; i < step.first + step.count; ++i) {
    const TimedInstruction& timed = compiled.instructions[i];
    const TimePoint begin = std::max(free, issuing + timed.issued);
    free = begin + (drawn_out ? Duration::from_seconds(timed.duration.seconds() * (busy / step.busy)) : timed.duration);
    add(rank, timed.index, begin, free);
  }
}

void Recorder::transfer(RankId rank, std::uint32_t instruction, TimePoint begin, TimePoint end) {
  add(rank, instruction, begin, end);
}

void Recorder::add(RankId rank, std::uint32_t instruction, TimePoint begin, TimePoint end) {
  instruction_end_[slot_.at(rank)][instruction] = end;
  recording_.spans.push_back(span_of(plan_, rank, instruction, begin, end - begin, recording_.streams));
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
  sort_spans(recording_.spans);
  return std::move(recording_);
}

}  // namespace stepcast::run
