// Any plan that the checker accepts finishes on the CPU backend, every instruction in the order that streams and events ask for.
#include <doctest/doctest.h>

#include <algorithm>

#include "executor/common/fewer_workers.hpp"
#include "executor/common/shrink.hpp"
#include "executor/cpu/synthetic_payload.hpp"
#include "sim/plan/check.hpp"
#include "tests/support/local_workers.hpp"
#include "tests/support/random_plan.hpp"

using namespace stepcast;
using namespace stepcast::executor;

TEST_SUITE_BEGIN("property");

namespace {

constexpr std::uint64_t kPlans = 40;
constexpr std::size_t kBlock = 4096;  // elements of data: these plans are about order

// At most two of each axis, and 1/256 of the size.
plan::Plan small_plan(std::uint64_t seed) {
  plan::Plan plan = test::random_plan(seed);
  for (const plan::Axis axis : {plan::Axis::kTensor, plan::Axis::kData}) plan.degrees[axis] = std::min(plan.degrees[axis], 2);
  return shrink(std::move(plan), 256);
}

// What runs on a stream does not overlap; what follows a wait begins after what its event marks.
void check_order(const plan::Program& program, std::span<const Interval> times) {
  std::vector<std::int64_t> stream_end(program.streams.size(), 0);
  std::vector<std::int64_t> event_at(program.event_count, 0);
  for (std::size_t i = 0; i < times.size(); ++i) {
    const plan::Instruction& instruction = program.instructions[i];
    REQUIRE(times[i].begin >= stream_end[instruction.stream.index()]);
    REQUIRE(times[i].end >= times[i].begin);
    stream_end[instruction.stream.index()] = times[i].end;
    if (const auto* record = std::get_if<plan::Record>(&instruction.body)) event_at[record->event.index()] = times[i].begin;
    if (const auto* wait = std::get_if<plan::Wait>(&instruction.body)) REQUIRE(times[i].end >= event_at[wait->event.index()]);
  }
}

}  // namespace

TEST_CASE("executor: every accepted plan finishes, in order, step after step") {
  for (std::uint64_t seed = 1; seed <= kPlans; ++seed) {
    CAPTURE(seed);
    const plan::Plan plan = small_plan(seed);
    REQUIRE(plan::check(plan).empty());
    std::mutex mutex;
    test::for_workers(plan.world_size(), [&](RankId rank, Messenger& messenger) {
      SyntheticPayload payload{plan.program(rank), seed, kBlock};
      CpuDevice device{plan, rank, messenger, payload, Bytes{std::int64_t{1} << 40}};
      for (int step = 0; step < 2; ++step) {
        play(plan.program(rank), device);
        const std::lock_guard lock{mutex};
        check_order(plan.program(rank), device.intervals());
      }
    });
  }
}

TEST_CASE("executor: where a worker fails the others give up and its error is the one that is thrown") {
  const plan::Plan plan = small_plan(3);
  REQUIRE(plan.world_size() > 1);
  CHECK_THROWS_WITH(test::for_workers(plan.world_size(),
                                      [&](RankId rank, Messenger& messenger) {
                                        SyntheticPayload payload{plan.program(rank), 1, kBlock};
                                        const Bytes memory{rank.value() == 0 ? 1 : std::int64_t{1} << 40};
                                        CpuDevice device{plan, rank, messenger, payload, memory};
                                        play(plan.program(rank), device);
                                      }),
                    doctest::Contains("out of memory"));
}

// Of any plan, on any number of processes: what is left is sound, has its kernels, and finishes.
TEST_CASE("executor: a plan's distinct programs run on fewer processes") {
  for (std::uint64_t seed = 1; seed <= kPlans; ++seed) {
    CAPTURE(seed);
    const plan::Plan whole = shrink(test::random_plan(seed), 256);
    for (const std::int32_t processes : {1, 2, 3}) {
      CAPTURE(processes);
      const FewerWorkers fewer = on_fewer(whole, processes);
      REQUIRE(plan::check(fewer.plan).empty());
      REQUIRE(fewer.plan.world_size() <= std::max(processes, std::min(processes, whole.world_size())));
      CHECK(fewer.note.empty() == (whole.world_size() <= processes));
      if (seed > kPlans / 4) continue;
      test::for_workers(fewer.plan.world_size(), [&](RankId rank, Messenger& messenger) {
        SyntheticPayload payload{fewer.plan.program(rank), seed, kBlock};
        CpuDevice device{fewer.plan, rank, messenger, payload, Bytes{std::int64_t{1} << 40}};
        play(fewer.plan.program(rank), device);
      });
    }
  }
}
