#include "sim/engine/engine.hpp"

#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <vector>

using namespace stepcast;
using namespace stepcast::engine;

namespace {

TimePoint ps(std::int64_t count) { return TimePoint::at(Duration::picoseconds(count)); }

// Writes down what fires; `then` may react.
struct Recorder : EventTarget {
  std::vector<std::uint64_t> args;
  std::vector<std::int64_t> times;
  std::function<void(Engine&, std::uint32_t, std::uint64_t)> then;
  void on_event(Engine& engine, std::uint32_t kind, std::uint64_t arg) override {
    args.push_back(arg);
    times.push_back(engine.now().count());
    if (then) then(engine, kind, arg);
  }
  [[nodiscard]] std::string_view target_name() const override { return "recorder"; }
};

using Args = std::vector<std::uint64_t>;

}  // namespace

TEST_SUITE_BEGIN("unit");

// Time first, then phase, then insertion: of five events at 7 ps the completion scheduled last still
// precedes the samples, and the two samples keep their order.
TEST_CASE("engine: order is time, phase, insertion") {
  for (const QueueKind kind : {QueueKind::kRadix, QueueKind::kNaive}) {
    Engine engine(kind);
    Recorder target;
    engine.at(ps(9), Phase::kFault, target, 0, 5);
    engine.at(ps(7), Phase::kSample, target, 0, 3);
    engine.at(ps(7), Phase::kSample, target, 0, 4);
    engine.at(ps(7), Phase::kDispatch, target, 0, 2);
    engine.at(ps(7), Phase::kCompletion, target, 0, 1);
    engine.at(ps(3), Phase::kSample, target, 0, 0);
    CHECK(engine.run() == StopReason::kDrained);
    CHECK(target.args == Args{0, 1, 2, 3, 4, 5});
    CHECK(target.times == std::vector<std::int64_t>{3, 7, 7, 7, 7, 9});
    CHECK(engine.events_fired() == 6);
    CHECK(engine.now() == ps(9));
  }
}

// At 5 ps, while a sample fires, a fault and a completion for the same instant are scheduled: they
// fire before the second sample, in phase order; the instant does not advance.
TEST_CASE("engine: events scheduled for the running instant still sort by phase") {
  Engine engine;
  Recorder target;
  target.then = [&](Engine& e, std::uint32_t, std::uint64_t arg) {
    if (arg != 0) return;
    e.at(e.now(), Phase::kCompletion, target, 0, 11);
    e.at(e.now(), Phase::kFault, target, 0, 10);
  };
  engine.at(ps(5), Phase::kSample, target, 0, 0);
  engine.at(ps(5), Phase::kSample, target, 0, 1);
  engine.run();
  CHECK(target.args == Args{0, 10, 11, 1});
  CHECK(engine.now() == ps(5));
}

TEST_CASE("engine: cancel is true once, and false for fired, cancelled and default ids") {
  Engine engine;
  Recorder target;
  const EventId fires = engine.at(ps(1), Phase::kDispatch, target, 0, 1);
  const EventId dropped = engine.at(ps(2), Phase::kDispatch, target, 0, 2);
  CHECK(engine.is_pending(dropped));
  CHECK(engine.cancel(dropped));
  CHECK_FALSE(engine.is_pending(dropped));
  CHECK_FALSE(engine.cancel(dropped));
  CHECK_FALSE(engine.cancel(EventId{}));
  engine.run();
  CHECK(target.args == Args{1});
  CHECK_FALSE(engine.cancel(fires));
  // The slot is used again; the old id must not reach the new event.
  const EventId again = engine.at(ps(5), Phase::kDispatch, target, 0, 3);
  CHECK_FALSE(engine.cancel(fires));
  CHECK_FALSE(engine.cancel(dropped));
  CHECK(again != fires);
  engine.run();
  CHECK(target.args == Args{1, 3});
}

// A cancelled event at 2 ps must not advance anything: when the run drains at 1 ps, 1 ps is still
// a time to schedule at.
TEST_CASE("engine: a cancelled last event does not move the clock") {
  Engine engine;
  Recorder target;
  engine.at(ps(1), Phase::kDispatch, target, 0, 1);
  engine.cancel(engine.at(ps(2), Phase::kDispatch, target, 0, 2));
  CHECK(engine.run() == StopReason::kDrained);
  CHECK(engine.now() == ps(1));
  engine.at(ps(1), Phase::kDispatch, target, 0, 3);
  engine.run();
  CHECK(target.args == Args{1, 3});
  CHECK(engine.now() == ps(1));
}

TEST_CASE("engine: run stops at until, with the clock there, and goes on") {
  Engine engine;
  Recorder target;
  engine.at(ps(10), Phase::kDispatch, target, 0, 1);
  engine.at(ps(30), Phase::kDispatch, target, 0, 3);
  CHECK(engine.run(ps(20)) == StopReason::kUntil);
  CHECK(engine.now() == ps(20));
  engine.at(ps(25), Phase::kDispatch, target, 0, 2);  // between the clock and the next event
  CHECK(engine.run(ps(30)) == StopReason::kDrained);  // `until` itself is included
  CHECK(target.args == Args{1, 2, 3});
}

TEST_CASE("engine: stop ends the run after the current event") {
  Engine engine;
  Recorder target;
  target.then = [](Engine& e, std::uint32_t, std::uint64_t arg) {
    if (arg == 1) e.stop();
  };
  engine.at(ps(1), Phase::kDispatch, target, 0, 1);
  engine.at(ps(1), Phase::kDispatch, target, 0, 2);
  CHECK(engine.run() == StopReason::kStopped);
  CHECK(target.args == Args{1});
  CHECK(engine.run() == StopReason::kDrained);
  CHECK(target.args == Args{1, 2});
}

// A target that re-schedules itself at the same instant makes no progress; the budget ends it and
// the dump names it.
TEST_CASE("engine: a loop without progress hits the budget and is named in the dump") {
  Engine engine;
  Recorder target;
  target.then = [&](Engine& e, std::uint32_t kind, std::uint64_t) {
    e.at(e.now(), Phase::kSolve, target, kind, 9);
  };
  engine.at(ps(4), Phase::kSolve, target, 7, 9);
  CHECK(engine.run(TimePoint::max(), 1000) == StopReason::kBudget);
  CHECK(engine.events_fired() == 1000);
  CHECK(engine.now() == ps(4));
  CHECK(engine.describe_pending() ==
        "now 4 ps, 1000 events fired, 1 pending\n"
        "  4 ps phase 60 recorder#0 kind 7 arg 9\n");
}

TEST_CASE("engine: the dump is in firing order, marks daemons, and is cut") {
  Engine engine;
  Recorder target;
  engine.at(ps(8), Phase::kDispatch, target, 1, 0);
  engine.at_daemon(ps(2), Phase::kSample, target, 2, 0);
  engine.at(ps(2), Phase::kFault, target, 3, 0);
  engine.cancel(engine.at(ps(1), Phase::kFault, target, 4, 0));
  CHECK(engine.describe_pending(2) ==
        "now 0 ps, 0 events fired, 3 pending\n"
        "  2 ps phase 0 recorder#0 kind 3 arg 0\n"
        "  2 ps phase 80 recorder#0 kind 2 arg 0 daemon\n"
        "  and 1 more\n");
}

// A sampler every 10 ps beside one piece of work that ends at 25: it samples at 10 and 20, and the run
// ends at 25 although the next sample is pending.
TEST_CASE("engine: daemon events keep no run alive") {
  Engine engine;
  Recorder sampler;
  Recorder work;
  sampler.then = [&](Engine& e, std::uint32_t, std::uint64_t) {
    e.at_daemon(e.now() + Duration::picoseconds(10), Phase::kSample, sampler, 0);
  };
  engine.at_daemon(ps(10), Phase::kSample, sampler, 0);
  engine.at(ps(25), Phase::kCompletion, work, 0);
  CHECK(engine.run() == StopReason::kDrained);
  CHECK(sampler.times == std::vector<std::int64_t>{10, 20});
  CHECK(engine.now() == ps(25));
  CHECK(engine.pending() == 1);
}

TEST_CASE("engine: two engines in one process do not disturb each other") {
  Engine a;
  Engine b;
  Recorder in_a;
  Recorder in_b;
  for (std::uint64_t i = 0; i < 10; ++i) {
    a.at(ps(static_cast<std::int64_t>(i * i)), Phase::kDispatch, in_a, 1, i);
    b.at(ps(static_cast<std::int64_t>(i * i)), Phase::kDispatch, in_b, 1, i);
  }
  CHECK(a.run(ps(16)) == StopReason::kUntil);
  CHECK(b.now() == ps(0));
  CHECK(b.run() == StopReason::kDrained);
  CHECK(a.run() == StopReason::kDrained);
  CHECK(in_a.times == in_b.times);
  CHECK(a.order_fingerprint() == b.order_fingerprint());
}

// The fingerprint sees each of time, phase, target and kind, but not which object at which address.
TEST_CASE("engine: the fingerprint changes with time, phase, target and kind alone") {
  const auto print = [](std::int64_t time, Phase phase, bool second_target, std::uint32_t kind) {
    Engine engine;
    std::vector<Recorder> padding(static_cast<std::size_t>(kind));  // shifts addresses
    Recorder first;
    Recorder second;
    engine.at(ps(1), Phase::kDispatch, first, 0);
    engine.at(ps(time), phase, second_target ? second : first, kind);
    engine.run();
    return engine.order_fingerprint();
  };
  const std::uint64_t base = print(2, Phase::kSolve, false, 3);
  CHECK(base == print(2, Phase::kSolve, false, 3));
  CHECK(base != print(3, Phase::kSolve, false, 3));
  CHECK(base != print(2, Phase::kSample, false, 3));
  CHECK(base != print(2, Phase::kSolve, true, 3));
  CHECK(base != print(2, Phase::kSolve, false, 4));
}

// 200,000 events are cancelled while only 10 live: what is held stays near the sweep threshold
// (1024 dead events), not near 200,000.
TEST_CASE("engine: cancelled events do not pile up") {
  Engine engine;
  Recorder target;
  for (std::uint64_t i = 0; i < 10; ++i) engine.at(ps(5), Phase::kDispatch, target, 0, i);
  for (std::int64_t i = 0; i < 200'000; ++i) {
    engine.cancel(engine.at(ps(1000 + i * 977), Phase::kDispatch, target, 0));
    REQUIRE(engine.queued() <= 10 + 1025);
  }
  CHECK(engine.pending() == 10);
  engine.run();
  CHECK(target.args.size() == 10);
}

// Times that differ in the highest and in the lowest digit of the queue's base.
TEST_CASE("engine: far and near times sort") {
  Engine engine;
  Recorder target;
  const std::int64_t last = TimePoint::max().count();
  engine.at(ps(last), Phase::kDispatch, target, 0, 4);
  engine.at(ps(0), Phase::kDispatch, target, 0, 0);
  engine.at(ps(last - 1), Phase::kDispatch, target, 0, 3);
  engine.at(ps(64), Phase::kDispatch, target, 0, 2);
  engine.at(ps(63), Phase::kDispatch, target, 0, 1);
  CHECK(engine.run() == StopReason::kDrained);
  CHECK(target.args == Args{0, 1, 2, 3, 4});
}

TEST_SUITE_END();
