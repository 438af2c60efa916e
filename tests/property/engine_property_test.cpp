// The radix queue against the sorted vector: the same random operations on two engines, thousands of
// steps, many ties. Both logs must be equal event by event.
#include <doctest/doctest.h>

#include <vector>

#include "sim/base/random.hpp"
#include "sim/engine/engine.hpp"

using namespace stepcast;
using namespace stepcast::engine;

namespace {

constexpr Phase kPhases[] = {Phase::kFault, Phase::kCompletion, Phase::kDispatch, Phase::kSolve,
                             Phase::kSample};

struct Fired {
  std::int64_t time_ps;
  std::size_t target;
  std::uint32_t kind;
  std::uint64_t arg;
  friend bool operator==(const Fired&, const Fired&) = default;
};

// Delays from "this instant" (a third of all) over a few picoseconds (ties) to any power of two.
Duration random_delay(Rng& rng) {
  switch (rng.below(3)) {
    case 0: return Duration::picoseconds(0);
    case 1: return Duration::picoseconds(static_cast<std::int64_t>(rng.below(8)));
    default: return Duration::picoseconds(static_cast<std::int64_t>(rng.below(1ULL << rng.below(50))));
  }
}

// One engine and everything that happened to it. Reactions draw from a stream of their own, so two
// worlds stay in step exactly as long as their events do.
class World {
 public:
  World(QueueKind kind, std::uint64_t seed) : engine{kind}, reactions_{seed, "reactions"} {
    for (std::size_t i = 0; i < targets_.size(); ++i) targets_[i].set(this, i);
  }

  void schedule(Rng& rng) {
    const TimePoint time = engine.now() + random_delay(rng);
    const Phase phase = kPhases[rng.below(5)];
    EventTarget& target = targets_[rng.below(targets_.size())];
    const auto kind = static_cast<std::uint32_t>(rng.below(4));
    const bool daemon = rng.below(16) == 0;
    ids_.push_back(daemon ? engine.at_daemon(time, phase, target, kind, ids_.size())
                          : engine.at(time, phase, target, kind, ids_.size()));
  }
  // Recent ids are mostly pending, old ones mostly fired: both answers are common.
  bool cancel(Rng& rng) {
    if (ids_.empty()) return false;
    const std::uint64_t back = rng.below(rng.below(2) == 0 ? std::min<std::uint64_t>(8, ids_.size())
                                                           : ids_.size());
    return engine.cancel(ids_[ids_.size() - 1 - back]);
  }
  void react(std::size_t target, std::uint32_t kind, std::uint64_t arg) {
    log.push_back({engine.now().count(), target, kind, arg});
    const std::uint64_t dice = reactions_.below(16);
    if (dice < 5) schedule(reactions_);
    if (dice == 5) cancel(reactions_);
    if (dice == 6) engine.stop();
  }

  Engine engine;
  std::vector<Fired> log;

 private:
  struct Target : EventTarget {
    void set(World* owner, std::size_t number) { world = owner, index = number; }
    void on_event(Engine&, std::uint32_t kind, std::uint64_t arg) override {
      world->react(index, kind, arg);
    }
    World* world = nullptr;
    std::size_t index = 0;
  };
  std::array<Target, 3> targets_;
  std::vector<EventId> ids_;
  Rng reactions_;
};

}  // namespace

TEST_SUITE_BEGIN("property");

TEST_CASE("engine: the radix queue behaves as a sorted vector under random operations") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    World fast(QueueKind::kRadix, seed);
    World naive(QueueKind::kNaive, seed);
    Rng rng(seed, "operations");
    for (int step = 0; step < 3000; ++step) {
      const std::uint64_t dice = rng.below(100);
      const Rng before = rng;
      Rng again = before;
      if (dice < 60) {
        fast.schedule(rng);
        naive.schedule(again);
      } else if (dice < 80) {
        REQUIRE(fast.cancel(rng) == naive.cancel(again));
      } else if (dice < 90) {
        const std::uint64_t budget = rng.below(20);
        REQUIRE(fast.engine.run(TimePoint::max(), budget) == naive.engine.run(TimePoint::max(), budget));
      } else {
        const TimePoint until = fast.engine.now() + random_delay(rng);
        REQUIRE(fast.engine.run(until, 200) == naive.engine.run(until, 200));
      }
      REQUIRE(fast.engine.now() == naive.engine.now());
      REQUIRE(fast.engine.pending() == naive.engine.pending());
      if (step % 100 == 0) REQUIRE(fast.engine.describe_pending() == naive.engine.describe_pending());
    }
    REQUIRE(fast.engine.run(TimePoint::max(), 100'000) == naive.engine.run(TimePoint::max(), 100'000));
    REQUIRE(fast.log.size() > 1000);
    REQUIRE(fast.log == naive.log);
    REQUIRE(fast.engine.order_fingerprint() == naive.engine.order_fingerprint());
  }
}

// Bursts of cancelled events force the sweep in the middle of everything else.
TEST_CASE("engine: sweeping cancelled events keeps order and accounts") {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    CAPTURE(seed);
    World fast(QueueKind::kRadix, seed);
    World naive(QueueKind::kNaive, seed);
    Rng rng(seed, "bursts");
    for (int burst = 0; burst < 12; ++burst) {
      for (int i = 0; i < 1500; ++i) {
        Rng again = rng;
        fast.schedule(rng);
        naive.schedule(again);
      }
      for (int i = 0; i < 4000; ++i) {
        Rng again = rng;
        REQUIRE(fast.cancel(rng) == naive.cancel(again));
      }
      const std::uint64_t budget = rng.below(200);
      REQUIRE(fast.engine.run(TimePoint::max(), budget) == naive.engine.run(TimePoint::max(), budget));
      REQUIRE(fast.engine.pending() == naive.engine.pending());
    }
    REQUIRE(fast.log == naive.log);
    REQUIRE(fast.engine.describe_pending(5000) == naive.engine.describe_pending(5000));
  }
}

TEST_SUITE_END();
