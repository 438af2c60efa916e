#include "models/parallel/pass_lane.hpp"

namespace stepcast::parallel {

void PassLane::add(plan::Context context, std::function<void()> write) {
  pieces_.emplace_back([this, context, write = std::move(write)] {
    emitter_.builder.context(context);
    write();
    return false;
  });
}

void PassLane::add_steps(plan::Context context, std::span<const CompiledStep> steps, StepHook before, StepHook after) {
  for (std::size_t i = 0; i < steps.size(); ++i) {
    pieces_.emplace_back([this, context, i, step = &steps[i], before, after] {
      emitter_.builder.context(context);
      wait_until(i);
      if (before) before(step->index);
      const bool waits = issue(*step, i);
      if (after) after(step->index);
      return waits;
    });
  }
  add(context, [this] { wait_until(SIZE_MAX); });
}

bool PassLane::issue(const CompiledStep& step, std::size_t position) {
  plan::ProgramBuilder& builder = emitter_.builder;
  if (const auto* kernel = std::get_if<plan::KernelId>(&step.body)) {
    builder.compute(emitter_.compute, step.label, *kernel);
    issued_on(emitter_.compute);
    return false;
  }
  const auto& collective = std::get<plan::Collective>(step.body);
  if (step.overlap_steps == 0 && !beside_) {
    builder.collective(emitter_.compute, step.label, collective);
    issued_on(emitter_.compute);
    return false;
  }
  const plan::StreamId stream = builder.stream(plan::StreamKind::kCommunication, step.stream);
  builder.order(emitter_.compute, stream);
  builder.collective(stream, step.label, collective);
  pending_.push_back({position + step.overlap_steps + 1, builder.record(stream)});
  issued_on(stream);
  return step.overlap_steps == 0;
}

void PassLane::issued_on(plan::StreamId stream) {
  if (host_waits_) emitter_.host_waits_for(stream);
}

void PassLane::wait_until(std::size_t position) {
  std::erase_if(pending_, [&](const Pending& p) {
    if (p.needed_at > position) return false;
    emitter_.builder.wait(emitter_.compute, p.done);
    return true;
  });
}

void PassLane::write_some() {
  while (next_ < pieces_.size()) {
    if (pieces_[next_++]()) return;
  }
}

}  // namespace stepcast::parallel
