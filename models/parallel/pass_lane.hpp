// models/parallel/pass_lane.hpp — a pass cut into pieces, so that two passes can be written in turn.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "models/parallel/compiled_block.hpp"
#include "models/parallel/emitter.hpp"

namespace stepcast::parallel {

class PassLane {
 public:
  using StepHook = std::function<void(std::size_t)>;  // given the step's index in its block

  // `beside`: another pass is written in turn with this one, so no collective blocks compute. `host_waits`: for each kernel and collective.
  PassLane(Emitter& emitter, bool beside, bool host_waits) : emitter_{emitter}, beside_{beside}, host_waits_{host_waits} {}
  PassLane(const PassLane&) = delete;
  PassLane& operator=(const PassLane&) = delete;

  // Written in `context`.
  void add(plan::Context context, std::function<void()> write);
  void add_steps(plan::Context context, std::span<const CompiledStep> steps, StepHook before, StepHook after);

  [[nodiscard]] bool done() const { return next_ == pieces_.size(); }
  // Writes up to the next collective that the rest of the pass waits for, or all.
  void write_some();

 private:
  struct Pending {
    std::size_t needed_at;
    plan::EventId done;
  };
  bool issue(const CompiledStep& step, std::size_t position);
  void wait_until(std::size_t position);
  void issued_on(plan::StreamId stream);

  Emitter& emitter_;
  bool beside_;
  bool host_waits_;
  std::vector<std::function<bool()>> pieces_;  // true: a collective is under way that the next piece needs
  std::size_t next_ = 0;
  std::vector<Pending> pending_;
};

}  // namespace stepcast::parallel
