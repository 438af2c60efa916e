// sim/run/recorder.hpp — turns what recorded workers do into trace spans and memory counters.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sim/plan/plan.hpp"
#include "sim/run/compiled_program.hpp"
#include "sim/trace/record.hpp"

namespace stepcast::run {

class Recorder {
 public:
  Recorder(const plan::Plan& plan, const std::vector<RankId>& ranks);

  [[nodiscard]] bool wants(RankId rank) const { return recorded_[rank.index()]; }
  [[nodiscard]] bool empty() const { return recording_.workers.empty(); }

  // A chain of kernels that starts with its stream free at `free` and keeps the device busy for `busy`: all are drawn
  // out alike where that is more than they take alone. `issuing`: when the host began to issue the step's epoch.
  void kernels(RankId rank, const CompiledStream& compiled, const CompiledStep& step, TimePoint issuing, TimePoint free, Duration busy);
  // A collective or message that occupied its stream.
  void transfer(RankId rank, std::uint32_t instruction, TimePoint begin, TimePoint end);
  void counter(trace::Counter counter) { recording_.counters.push_back(std::move(counter)); }

  // Adds the memory counters and sorts. The recorder is done after that.
  trace::Recording finish();

 private:
  void add(RankId rank, std::uint32_t instruction, TimePoint begin, TimePoint end);
  void add_memory_counters();

  const plan::Plan& plan_;
  std::vector<bool> recorded_;                       // by rank
  std::vector<std::vector<TimePoint>> instruction_end_;  // [recorded worker, map order][instruction]
  std::map<RankId, std::size_t> slot_;
  trace::Recording recording_;
};

}  // namespace stepcast::run
