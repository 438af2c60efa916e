#include "executor/cpu/measure.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "executor/cpu/collectives.hpp"
#include "executor/cpu/machine_facts.hpp"

namespace stepcast::executor {
namespace {

constexpr std::uint32_t kControl = 0;                 // space of messages: points have none of their own to the next worker
constexpr std::uint32_t kControlSequence = 31'999;

// Whether any worker wants more samples.
bool anyone(bool wants, Messenger& messenger, RankId rank, std::uint32_t workers) {
  if (workers < 2) return wants;
  std::vector<RankId> members;
  for (std::uint32_t r = 0; r < workers; ++r) members.emplace_back(r);
  std::vector<std::byte> scratch;
  std::array<float, 1> flag{wants ? 1.0F : 0.0F};
  const Ring ring{messenger, {kControl, kControlSequence}, members, rank.index(), scratch, Reduction::kMost};
  all_reduce(ring, plan::Dtype::kFp32, std::as_writable_bytes(std::span{flag}));
  return flag[0] > 0.0F;
}

StepRecord sample(std::size_t begin, std::size_t end, const plan::Program& program, CpuDevice& device) {
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

void measure_points(const plan::Program& program, CpuDevice& device, Messenger& messenger, RankId rank, std::uint32_t workers, const SamplingRule& rule,
                    std::int64_t clock_offset_ns, RecordWriter& records) {
  constexpr int kWarmup = 2;
  std::size_t begin = 0;
  while (begin < program.instructions.size()) {
    std::size_t end = begin + 1;
    while (end < program.instructions.size() && program.instructions[end].layer == program.instructions[begin].layer) ++end;
    for (int i = 0; i < kWarmup; ++i) sample(begin, end, program, device);
    std::vector<StepRecord> samples;
    std::vector<double> seconds;
    do {
      messenger.barrier();
      StepRecord record = sample(begin, end, program, device);
      record.step = static_cast<std::uint32_t>(samples.size());
      record.time.begin += clock_offset_ns;
      record.time.end += clock_offset_ns;
      seconds.push_back(static_cast<double>(record.time.end - record.time.begin) * 1e-9);
      samples.push_back(std::move(record));
    } while (anyone(!has_enough(seconds, rule), messenger, rank, workers));
    samples.back().values.emplace_back("clock_mhz", clock_mhz());
    records.steps(samples);
    begin = end;
  }
}

}  // namespace stepcast::executor
