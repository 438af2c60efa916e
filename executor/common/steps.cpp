#include "executor/common/steps.hpp"

#include <algorithm>

namespace stepcast::executor {
namespace {

StepRecord record_of(const plan::Program& program, std::span<const Interval> intervals, std::int64_t step, std::int64_t clock_offset_ns) {
  StepRecord record{.step = static_cast<std::uint32_t>(step), .time = {}, .instructions = {}};
  bool first = true;
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    if (!takes_time(program.instructions[i].body)) continue;
    const Interval& t = intervals[i];
    record.time = first ? t : Interval{std::min(record.time.begin, t.begin), std::max(record.time.end, t.end)};
    first = false;
  }
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    if (!takes_time(program.instructions[i].body)) continue;
    record.instructions.push_back({static_cast<std::uint32_t>(i), {intervals[i].begin - record.time.begin, intervals[i].end - record.time.begin}});
  }
  record.time.begin += clock_offset_ns;
  record.time.end += clock_offset_ns;
  return record;
}

}  // namespace

void run_steps(const plan::Program& program, Device& device, const Payload& payload, Together& together, const WorkerOptions& options,
               std::int64_t clock_offset_ns, RecordWriter& records, const std::function<void()>& ended) {
  for (std::int64_t step = -options.warmup; step < options.steps; ++step) {
    together.barrier();
    play(program, device);
    ended();
    if (step < 0 || program.instructions.empty()) continue;
    StepRecord record = record_of(program, device.intervals(), step, clock_offset_ns);
    record.values = payload.values();
    records.step(record);
  }
  together.barrier();
}

}  // namespace stepcast::executor
