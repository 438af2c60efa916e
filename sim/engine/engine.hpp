// sim/engine/engine.hpp — the clock and the run loop.
//
// Events are plain data for an EventTarget and fire in the total order (time, phase, insertion). The
// same calls give the same order on every machine; order_fingerprint() is the proof.
//
//   struct Ping : engine::EventTarget {
//     void on_event(engine::Engine& engine, std::uint32_t kind, std::uint64_t arg) override { ... }
//   };
//   engine::Engine engine;
//   engine.at(TimePoint::at(5_us), engine::Phase::kCompletion, ping, kDone, message);
//   engine.run();
//
// Cost: docs/adr/0010-event-queue.md. An engine is a value; any number run in one process.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/hash.hpp"
#include "sim/base/time.hpp"
#include "sim/engine/naive_queue.hpp"
#include "sim/engine/phase.hpp"
#include "sim/engine/radix_queue.hpp"

namespace stepcast::engine {

class Engine;

// Whoever wants events. A long-lived object of a model, not one object an event; it must outlive its
// pending events and serve one engine at a time. The engine numbers its targets by first use.
class EventTarget {
 public:
  EventTarget() = default;
  EventTarget(const EventTarget&) = delete;
  EventTarget& operator=(const EventTarget&) = delete;
  virtual ~EventTarget() = default;

  virtual void on_event(Engine& engine, std::uint32_t kind, std::uint64_t arg) = 0;
  // For dumps.
  [[nodiscard]] virtual std::string_view target_name() const { return "target"; }

 private:
  friend class Engine;
  std::uint32_t id_ = std::numeric_limits<std::uint32_t>::max();
};

// Names one scheduled event. A default EventId names none. Never reused while an engine lives.
class EventId {
 public:
  constexpr EventId() = default;
  friend constexpr auto operator<=>(EventId, EventId) = default;

 private:
  friend class Engine;
  constexpr EventId(std::uint32_t slot, std::uint32_t generation)
      : slot_{slot}, generation_{generation} {}
  std::uint32_t slot_ = 0;
  std::uint32_t generation_ = 0;  // 0 is never given out
};

enum class StopReason : std::uint8_t {
  kDrained,  // only daemon events are left, or none
  kUntil,    // the next event is later than `until`; now() == until
  kBudget,   // max_events fired and more are due: describe_pending() says what
  kStopped,  // stop() was called
};

enum class QueueKind : std::uint8_t { kRadix, kNaive };

class Engine {
 public:
  explicit Engine(QueueKind queue = QueueKind::kRadix) : queue_kind_{queue} {}
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  [[nodiscard]] TimePoint now() const { return now_; }

  // Requires: time >= now(). O(1) amortised, no allocation at constant population.
  EventId at(TimePoint time, Phase phase, EventTarget& target, std::uint32_t kind, std::uint64_t arg = 0);
  EventId after(Duration delay, Phase phase, EventTarget& target, std::uint32_t kind,
                std::uint64_t arg = 0) {
    return at(now_ + delay, phase, target, kind, arg);
  }
  // A daemon event keeps no run alive: samplers, heartbeats, governors.
  EventId at_daemon(TimePoint time, Phase phase, EventTarget& target, std::uint32_t kind,
                    std::uint64_t arg = 0);

  // False if the event fired, was cancelled, or never was. O(1) amortised.
  bool cancel(EventId id);
  [[nodiscard]] bool is_pending(EventId id) const;

  // Fires events with time <= until. An event due at now() may be scheduled while it runs.
  StopReason run(TimePoint until = TimePoint::max(),
                 std::uint64_t max_events = std::numeric_limits<std::uint64_t>::max());
  // Ends run() after the current event; no effect outside run().
  void stop() { stop_requested_ = true; }

  [[nodiscard]] std::uint64_t events_fired() const { return fired_; }
  [[nodiscard]] std::size_t pending() const { return count(State::kForeground) + count(State::kDaemon); }
  // hash over the fired events of (time, phase, target by first use, kind).
  [[nodiscard]] std::uint64_t order_fingerprint() const { return fingerprint_; }
  // Text: the first `limit` pending events in firing order, one a line, then "and N more".
  [[nodiscard]] std::string describe_pending(std::size_t limit = 20) const;

  // Events held in memory, cancelled ones not yet swept included.
  [[nodiscard]] std::size_t queued() const { return pending() + count(State::kCancelled); }

 private:
  enum class State : std::uint8_t { kFree, kForeground, kDaemon, kCancelled };
  struct alignas(32) Event {  // within one cache line
    EventTarget* target = nullptr;
    std::uint64_t arg = 0;
    std::uint32_t kind = 0;
    std::uint32_t generation = 1;
    std::uint32_t next_free = 0;
    State state = State::kFree;
  };

  EventId schedule(TimePoint time, Phase phase, EventTarget& target, std::uint32_t kind,
                   std::uint64_t arg, State state);
  std::size_t& count(State state) { return counts_[static_cast<std::size_t>(state)]; }
  [[nodiscard]] std::size_t count(State state) const { return counts_[static_cast<std::size_t>(state)]; }
  void adopt(EventTarget& target);
  void free_slot(std::uint32_t slot);
  void sweep();
  template <class Queue>
  StopReason run_loop(Queue& queue, TimePoint until, std::uint64_t max_events);
  template <class Use>
  auto with_queue(Use&& use) {
    return queue_kind_ == QueueKind::kNaive ? use(naive_) : use(radix_);
  }

  TimePoint now_{};
  QueueKind queue_kind_;
  bool stop_requested_ = false;
  bool running_ = false;
  std::uint32_t free_slots_ = std::numeric_limits<std::uint32_t>::max();
  std::array<std::size_t, 4> counts_{};  // queued events by State
  std::uint64_t fired_ = 0;
  std::uint64_t fingerprint_ = Fingerprint{}.value();
  std::vector<Event> events_;
  std::vector<const EventTarget*> targets_;  // by id
  RadixQueue radix_;
  NaiveQueue naive_;
};

}  // namespace stepcast::engine
