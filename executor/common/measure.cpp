#include "executor/common/measure.hpp"

#include <algorithm>

namespace stepcast::executor {
namespace {

StepRecord sample(std::size_t begin, std::size_t end, const plan::Program& program, Device& device) {
  device.begin_step();
  for (std::size_t i = begin; i < end; ++i) device.issue(i);
  device.finish();
  StepRecord record;
  const std::span<const Interval> times = device.intervals().subspan(begin, end - begin);
  record.time = times.front();
  for (const Interval& t : times) record.time = {std::min(record.time.begin, t.begin), std::max(record.time.end, t.end)};
  for (std::size_t i = begin; i < end; ++i) {
    const Interval& t = device.intervals()[i];
    if (takes_time(program.instructions[i].body)) record.instructions.push_back({static_cast<std::uint32_t>(i), {t.begin - record.time.begin, t.end - record.time.begin}});
  }
  return record;
}

}  // namespace

void measure_points(const plan::Program& program, Device& device, Together& together, const SamplingRule& rule, std::int64_t clock_offset_ns,
                    const std::function<Readings()>& readings, RecordWriter& records) {
  constexpr int kWarmup = 2;
  std::size_t begin = 0;
  while (begin < program.instructions.size()) {
    std::size_t end = begin + 1;
    while (end < program.instructions.size() && program.instructions[end].layer == program.instructions[begin].layer) ++end;
    for (int i = 0; i < kWarmup; ++i) sample(begin, end, program, device);
    std::vector<StepRecord> samples;
    std::vector<double> seconds;
    do {
      together.barrier();
      StepRecord record = sample(begin, end, program, device);
      record.step = static_cast<std::uint32_t>(samples.size());
      record.time.begin += clock_offset_ns;
      record.time.end += clock_offset_ns;
      seconds.push_back(static_cast<double>(record.time.end - record.time.begin) * 1e-9);
      samples.push_back(std::move(record));
    } while (together.anyone(!has_enough(seconds, rule)));
    samples.back().values = readings();
    records.steps(samples);
    begin = end;
  }
}

}  // namespace stepcast::executor
