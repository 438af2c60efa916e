#include "sim/engine/engine.hpp"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

namespace stepcast::engine {
namespace {

constexpr std::uint32_t kNoSlot = std::numeric_limits<std::uint32_t>::max();
// Sweeping costs O(queued); doing it only when dead events outnumber live ones, and are more than a
// few pages, makes it O(1) per cancel.
constexpr std::size_t kSweepMinimum = 1024;

// Odd constants (digits of pi and e) keep the two words apart before one mixing step per event.
constexpr std::uint64_t kTimeFactor = 0x243f6a8885a308d3ULL;
constexpr std::uint64_t kWhoFactor = 0xb7e151628aed2a6bULL;

class RunningScope {
 public:
  explicit RunningScope(bool& running) : running_{running} {
    SIM_CHECK(!running_, "run() inside run()");
    running_ = true;
  }
  RunningScope(const RunningScope&) = delete;
  RunningScope& operator=(const RunningScope&) = delete;
  ~RunningScope() { running_ = false; }

 private:
  bool& running_;
};

}  // namespace

EventId Engine::at(TimePoint time, Phase phase, EventTarget& target, std::uint32_t kind,
                   std::uint64_t arg) {
  return schedule(time, phase, target, kind, arg, State::kForeground);
}

EventId Engine::at_daemon(TimePoint time, Phase phase, EventTarget& target, std::uint32_t kind,
                          std::uint64_t arg) {
  return schedule(time, phase, target, kind, arg, State::kDaemon);
}

EventId Engine::schedule(TimePoint time, Phase phase, EventTarget& target, std::uint32_t kind,
                         std::uint64_t arg, State state) {
  SIM_CHECK(time >= now_, time.count(), now_.count(), target.target_name(), kind);
  if (target.id_ >= targets_.size() || targets_[target.id_] != &target) [[unlikely]] adopt(target);

  std::uint32_t slot = free_slots_;
  if (slot == kNoSlot) [[unlikely]] {
    SIM_CHECK(events_.size() < kNoSlot, events_.size());
    slot = static_cast<std::uint32_t>(events_.size());
    events_.emplace_back();
  } else {
    free_slots_ = events_[slot].next_free;
  }
  Event& event = events_[slot];
  event.target = &target;
  event.arg = arg;
  event.kind = kind;
  event.state = state;
  ++count(state);

  const QueueNode node{time.count(), slot, static_cast<std::uint32_t>(phase)};
  if (queue_kind_ == QueueKind::kNaive) [[unlikely]] {
    naive_.push(node);
  } else {
    radix_.push(node);
  }
  return EventId{slot, event.generation};
}

void Engine::adopt(EventTarget& target) {
  target.id_ = static_cast<std::uint32_t>(targets_.size());
  targets_.push_back(&target);
}

void Engine::free_slot(std::uint32_t slot) {
  Event& event = events_[slot];
  event.state = State::kFree;
  // A slot that has used up its generations is retired, so an old id can never match again.
  if (event.generation == std::numeric_limits<std::uint32_t>::max()) return;
  ++event.generation;
  event.next_free = free_slots_;
  free_slots_ = slot;
}

bool Engine::is_pending(EventId id) const {
  if (id.generation_ == 0 || id.slot_ >= events_.size()) return false;
  const Event& event = events_[id.slot_];
  return event.generation == id.generation_ &&
         (event.state == State::kForeground || event.state == State::kDaemon);
}

bool Engine::cancel(EventId id) {
  if (!is_pending(id)) return false;
  Event& event = events_[id.slot_];
  --count(event.state);
  event.state = State::kCancelled;  // the slot is freed when its node leaves the queue
  ++count(State::kCancelled);
  if (count(State::kCancelled) > kSweepMinimum && count(State::kCancelled) > pending()) sweep();
  return true;
}

void Engine::sweep() {
  with_queue([this](auto& queue) {
    queue.remove_if([this](std::uint32_t slot) {
      if (events_[slot].state != State::kCancelled) return false;
      free_slot(slot);
      return true;
    });
  });
  count(State::kCancelled) = 0;
}

StopReason Engine::run(TimePoint until, std::uint64_t max_events) {
  const RunningScope scope(running_);
  stop_requested_ = false;
  return with_queue([&](auto& queue) { return run_loop(queue, until, max_events); });
}

template <class Queue>
StopReason Engine::run_loop(Queue& queue, TimePoint until, std::uint64_t max_events) {
  const auto fetch = [this](std::uint32_t slot) { __builtin_prefetch(events_.data() + slot, 1); };
  for (std::uint64_t budget = max_events;;) {
    if (count(State::kForeground) == 0) {
      if (pending() == 0) {  // what is queued is cancelled: start afresh at now()
        sweep();
        queue.restart_at(now_.count());
      }
      return StopReason::kDrained;
    }
    const std::int64_t next_ps = queue.next_time();
    if (next_ps > until.count()) {
      now_ = std::max(now_, until);
      return StopReason::kUntil;
    }
    if (budget == 0) return StopReason::kBudget;

    const QueueNode node = queue.pop(fetch);
    const Event& event = events_[node.slot];  // read before the slot is free to be used again
    EventTarget& target = *event.target;
    const std::uint32_t kind = event.kind;
    const std::uint64_t arg = event.arg;
    const State state = event.state;
    free_slot(node.slot);
    --count(state);
    if (state == State::kCancelled) continue;
    --budget;
    ++fired_;
    now_ = TimePoint::at(Duration::picoseconds(node.time_ps));
    const std::uint64_t who = (static_cast<std::uint64_t>(target.id_) << 32) | kind;
    fingerprint_ = mix64(fingerprint_ + static_cast<std::uint64_t>(node.time_ps) * kTimeFactor +
                         (who + (static_cast<std::uint64_t>(node.phase) << 56)) * kWhoFactor);
    target.on_event(*this, kind, arg);
    if (stop_requested_) return StopReason::kStopped;
  }
}

std::string Engine::describe_pending(std::size_t limit) const {
  std::vector<QueueNode> nodes;
  const auto collect = [&](const QueueNode& node) {
    if (events_[node.slot].state != State::kCancelled) nodes.push_back(node);
  };
  if (queue_kind_ == QueueKind::kNaive) {
    naive_.for_each(collect);
  } else {
    radix_.for_each(collect);
  }
  std::stable_sort(nodes.begin(), nodes.end(), [](const QueueNode& a, const QueueNode& b) {
    return std::tuple(a.time_ps, a.phase) < std::tuple(b.time_ps, b.phase);
  });
  std::string text = fmt::format("now {} ps, {} events fired, {} pending\n", now_.count(), fired_, nodes.size());
  for (std::size_t i = 0; i < std::min(limit, nodes.size()); ++i) {
    const Event& event = events_[nodes[i].slot];
    text += fmt::format("  {} ps phase {} {}#{} kind {} arg {}{}\n", nodes[i].time_ps, nodes[i].phase,
                        event.target->target_name(), event.target->id_, event.kind, event.arg,
                        event.state == State::kDaemon ? " daemon" : "");
  }
  if (nodes.size() > limit) text += fmt::format("  and {} more\n", nodes.size() - limit);
  return text;
}

}  // namespace stepcast::engine
