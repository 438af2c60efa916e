#include "executor/common/measure.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <variant>

#include "executor/common/payload.hpp"

namespace stepcast::executor {
namespace {

// Whether a device may be kept from starting until all of a point is queued: kernels and copies by engines, few enough for every queue. Points
// of more launches measure the host that issues them.
bool can_be_held(std::size_t begin, std::size_t end, const plan::Program& program) {
  constexpr int kMostLaunches = 256;
  int launches = 0;
  for (std::size_t i = begin; i < end; ++i) {
    const plan::Body& body = program.instructions[i].body;
    const auto* const compute = std::get_if<plan::Compute>(&body);
    const auto* const copy = std::get_if<plan::Copy>(&body);
    if (copy != nullptr && (copy->host != plan::Memory::kPinnedHost || copy->kind == plan::CopyKind::kNvmeToHost || copy->kind == plan::CopyKind::kHostToNvme)) return false;
    if (compute == nullptr && copy == nullptr) return false;
    launches += compute == nullptr ? 1 : program.kernels[compute->kernel.index()].launches;
  }
  return launches <= kMostLaunches;
}

StepRecord sample(std::size_t begin, std::size_t end, bool held, const plan::Program& program, Device& device) {
  device.begin_step();
  if (held) device.hold();
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

// Asking a driver takes longer than a short kernel: what was read less than 20 ms ago still holds.
class RecentReadings {
 public:
  explicit RecentReadings(const std::function<Readings()>& read) : read_{read} {}
  const Readings& now() {
    const auto time = std::chrono::steady_clock::now();
    if (!last_ || time - *last_ > std::chrono::milliseconds{20}) {
      readings_ = read_();
      last_ = time;
    }
    return readings_;
  }

 private:
  const std::function<Readings()>& read_;
  Readings readings_;
  std::optional<std::chrono::steady_clock::time_point> last_;
};

}  // namespace

void measure_points(const plan::Program& program, Device& device, Together& together, const SamplingRule& rule, std::int64_t clock_offset_ns,
                    const std::function<Readings()>& readings, RecordWriter& records) {
  constexpr int kWarmup = 2;
  RecentReadings reading{readings};
  std::size_t begin = 0;
  while (begin < program.instructions.size()) {
    std::size_t end = begin + 1;
    while (end < program.instructions.size() && program.instructions[end].layer == program.instructions[begin].layer) ++end;
    try {
      for (int i = 0; i < kWarmup; ++i) sample(begin, end, false, program, device);
    } catch (const NotSupported& reason) {
      device.finish();
      records.facts({{"left out " + program.labels[program.instructions[begin].label.index()], reason.what()}});
      begin = end;
      continue;
    }
    const bool held = can_be_held(begin, end, program);
    std::vector<StepRecord> samples;
    std::vector<double> seconds;
    do {
      together.barrier();
      StepRecord record = sample(begin, end, held, program, device);
      record.step = static_cast<std::uint32_t>(samples.size());
      record.time.begin += clock_offset_ns;
      record.time.end += clock_offset_ns;
      seconds.push_back(static_cast<double>(record.time.end - record.time.begin) * 1e-9);
      record.values = reading.now();
      samples.push_back(std::move(record));
    } while (together.anyone(!has_enough(seconds, rule)));
    records.steps(samples);
    begin = end;
  }
}

}  // namespace stepcast::executor
