// tests/support/stream_order.hpp — which instruction of a program is sure to run before which: in-order
// streams, and events between them, as vector clocks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/plan/program.hpp"

namespace stepcast::test {

class StreamOrder {
 public:
  explicit StreamOrder(const plan::Program& program) : program_{program} {
    const std::size_t streams = program.streams.size();
    std::vector<Clock> now(streams, Clock(streams, 0));
    std::vector<Clock> recorded(program.event_count);
    for (const plan::Instruction& i : program.instructions) {
      Clock& clock = now[i.stream.index()];
      if (const auto* wait = std::get_if<plan::Wait>(&i.body)) {
        const Clock& event = recorded[wait->event.index()];
        for (std::size_t s = 0; s < streams; ++s) clock[s] = std::max(clock[s], event[s]);
      }
      ++clock[i.stream.index()];
      if (const auto* record = std::get_if<plan::Record>(&i.body)) recorded[record->event.index()] = clock;
      clocks_.push_back(clock);
    }
  }

  // Whatever the durations, `a` has ended before `b` starts.
  [[nodiscard]] bool runs_before(std::size_t a, std::size_t b) const {
    const std::size_t stream = program_.instructions[a].stream.index();
    return a != b && clocks_[b][stream] >= clocks_[a][stream];
  }

 private:
  using Clock = std::vector<std::uint32_t>;  // instructions of each stream known to be done, own included
  const plan::Program& program_;
  std::vector<Clock> clocks_;
};

}  // namespace stepcast::test
