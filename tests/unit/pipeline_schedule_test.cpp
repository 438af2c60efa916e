// Bubble and memory of every schedule against their published formulas, at unit costs and free links.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>

#include "models/parallel/messages.hpp"
#include "models/parallel/planner.hpp"
#include "models/parallel/schedule_file.hpp"
#include "models/parallel/schedule_picture.hpp"
#include "sim/base/diagnostic.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/plan_sums.hpp"
#include "tests/support/workload_shapes.hpp"

using namespace stepcast;
using namespace stepcast::parallel;

TEST_SUITE_BEGIN("unit");

namespace {

struct Cost {
  std::int64_t within = 0;  // idle between a stage's first and last action, the worst stage
  std::int64_t of_step = 0;
  std::int64_t first_stage = 0;  // chunk activations
  std::int64_t any_stage = 0;
  friend bool operator==(const Cost&, const Cost&) = default;
};

Cost cost_of(Schedule schedule, std::int32_t p, std::int64_t m, std::int32_t v = 1) {
  const Placement placement = placement_of(schedule, p, v);
  const auto lists = make_schedule(schedule, placement, m);
  const Timeline timeline = play(lists, placement);
  REQUIRE(!timeline.deadlock);
  Cost cost{.first_stage = peak_activations(lists.front())};
  for (std::size_t stage = 0; stage < lists.size(); ++stage) {
    cost.within = std::max(cost.within, timeline.idle_within(stage));
    cost.of_step = std::max(cost.of_step, timeline.idle_of_step(stage));
    cost.any_stage = std::max(cost.any_stage, peak_activations(lists[stage]));
  }
  return cost;
}

// Units: F = B of the inputs = W = 1, so a full backward pass is 2.
constexpr std::array<std::int32_t, 7> kStages{2, 3, 4, 5, 6, 7, 8};

}  // namespace

// (p-1)(F+B), F = 1, B = 2. GPipe holds all m micro-batches, 1F1B p, Alpa's overlap-friendly 2p-1.
TEST_CASE("schedule: GPipe, 1F1B and 1F1B-overlap idle (p-1)(F+B)") {
  for (const std::int32_t p : kStages) {
    for (const std::int64_t m : {2 * p, 3 * p}) {
      CAPTURE(p);
      CHECK(cost_of(Schedule::kGpipe, p, m) == Cost{3 * (p - 1), 3 * (p - 1), m, m});
      CHECK(cost_of(Schedule::kOneFOneB, p, m) == Cost{3 * (p - 1), 3 * (p - 1), p, p});
      CHECK(cost_of(Schedule::kOneFOneBOverlap, p, m) == Cost{3 * (p - 1), 3 * (p - 1), 2 * p - 1, 2 * p - 1});
    }
  }
}

// A chunk's passes are 1/v of a stage's: (p-1)(F+B)/v of a stage is (p-1)(F+B) of a chunk. Activations
// p (1 + (p-1)/(p v)) micro-batches are p v + p - 1 chunks. Derived: 2(p-1) + (v-1)p F ahead and one more.
TEST_CASE("schedule: interleaved 1F1B idles (p-1)(F+B)/v") {
  for (const std::int32_t p : kStages) {
    for (const std::int32_t v : {2, 3, 4}) {
      CAPTURE(p);
      CAPTURE(v);
      CHECK(cost_of(Schedule::kInterleaved, p, 2 * p, v) == Cost{3 * (p - 1), 3 * (p - 1), p * v + p - 1, p * v + p - 1});
    }
  }
}

// ZB-H1: (p-1)(F+B-2W) with B the full backward, 1 + 2 - 2 = 1; p micro-batches on every stage.
// ZB-H2: none within a stage's own time (the step is p-1 longer than a stage: the parallelogram); 2p-1.
// ZB-V: the same with 2p chunks of half a stage, that is p micro-batches.
TEST_CASE("schedule: zero-bubble schedules") {
  for (const std::int32_t p : kStages) {
    for (const std::int64_t m : {2 * p, 3 * p}) {
      CAPTURE(p);
      CHECK(cost_of(Schedule::kZbH1, p, m) == Cost{p - 1, p - 1, p, p});
      CHECK(cost_of(Schedule::kZbH2, p, m) == Cost{0, p - 1, 2 * p - 1, 2 * p - 1});
      const Cost v = cost_of(Schedule::kZbV, p, m);
      CHECK(v.within == 0);
      CHECK(v.any_stage == 2 * p);
    }
  }
}

// Published for large p: half of 1F1B's bubble and memory, 2/3 of its bubble and a third of its memory.
// 1F1B in chunk units: bubble 6(p-1), memory 2p. A block of whole units repeats without collisions only
// with small gaps, whose cost in memory is constant: at most 3 chunks above p, 8/3 above 2p/3 here.
TEST_CASE("schedule: V-Half and V-Min trade bubble for memory") {
  for (const std::int32_t p : kStages) {
    CAPTURE(p);
    const Cost half = cost_of(Schedule::kVHalf, p, 3 * p);
    CHECK(half.within <= 3 * (p - 1));
    CHECK(half.any_stage <= p + 3);
    const Cost least = cost_of(Schedule::kVMin, p, 3 * p);
    CHECK(least.within <= 4 * (p - 1) + 1);  // + 1: three divides p
    CHECK(3 * least.any_stage <= 2 * p + 8);
    CHECK(least.any_stage <= half.any_stage);
  }
}

// (p/2-1)(F&B + B - 3W) with F&B = 3, B = 2, W = 1; p+1 activations. DualPipe-V has two parts of the
// model on each of its p stages: the formula's p is 2p.
TEST_CASE("schedule: DualPipe and DualPipe-V idle (p/2-1)(F&B + B - 3W)") {
  for (const std::int32_t p : {2, 4, 6, 8}) {
    CAPTURE(p);
    for (const std::int64_t m : {2 * p, 2 * p + 2, 4 * p}) {
      const Cost cost = cost_of(Schedule::kDualPipe, p, m);
      CHECK(cost.within == (p / 2 - 1) * 2);
      CHECK(cost.any_stage == p + 1);
    }
  }
  for (const std::int32_t p : kStages) {
    for (const std::int64_t m : {2 * p, 3 * p}) {
      const Cost cost = cost_of(Schedule::kDualPipeV, p, m);
      CHECK(cost.within == (p - 1) * 2);
      CHECK(cost.any_stage == 2 * p + 1);
    }
  }
}

// Forward passes alone: (p-1)F.
TEST_CASE("schedule: forward only idles (p-1)F") {
  const Placement placement{Arrangement::kLinear, 4, 1};
  std::vector<ActionList> lists(4);
  for (ActionList& list : lists) {
    for (std::uint16_t k = 0; k < 8; ++k) list.push_back({ActionKind::kForward, 0, k});
  }
  const Timeline timeline = play(lists, placement);
  CHECK(timeline.length() == 8 + 3);
  CHECK(timeline.idle_of_step(0) == 3);
}

// p = 4, m = 8: pictures to check by eye.
TEST_CASE("schedule: pictures of p = 4, m = 8") {
  for (const Schedule s : {Schedule::kGpipe, Schedule::kOneFOneB, Schedule::kOneFOneBOverlap, Schedule::kInterleaved,
                           Schedule::kZbH1, Schedule::kZbH2, Schedule::kZbV, Schedule::kVHalf, Schedule::kVMin,
                           Schedule::kDualPipe, Schedule::kDualPipeV}) {
    const Placement placement = placement_of(s, 4, s == Schedule::kInterleaved ? 2 : 1);
    test::check_golden(std::string{"schedules/"} + name_of(s) + ".txt", draw_schedule(make_schedule(s, placement, 8), placement));
  }
}

// Messages: every part of the model but the last hands each micro-batch on once forward and once backward,
// except where both parts are on one stage.  n parts: 2 m (n-1); V: the turn is free, 2 m (2p-2);
// dual: 2 (m/2) (p-1) each way.
TEST_CASE("schedule: messages between stages") {
  const auto count = [](Schedule s, std::int32_t p, std::int64_t m, std::int32_t v) {
    const Placement placement = placement_of(s, p, v);
    const auto lists = make_schedule(s, placement, m);
    return static_cast<std::int64_t>(plan_messages(lists, placement, play(lists, placement), false).messages.size());
  };
  CHECK(count(Schedule::kOneFOneB, 4, 8, 1) == 2 * 8 * 3);
  CHECK(count(Schedule::kZbH2, 4, 8, 1) == 2 * 8 * 3);
  CHECK(count(Schedule::kInterleaved, 4, 8, 3) == 2 * 8 * 11);
  CHECK(count(Schedule::kZbV, 4, 8, 1) == 2 * 8 * 6);
  CHECK(count(Schedule::kDualPipe, 4, 8, 1) == 2 * 8 * 3);
  CHECK(count(Schedule::kDualPipeV, 4, 8, 1) == 2 * 8 * 6);
}

// Megatron-Core's group: 6 micro-batches over 4 stages pass in one group of 6.
TEST_CASE("schedule: interleaving micro-batches that the stages do not divide") {
  const ActionList list = interleaved_actions(0, 4, 2, 6);
  for (std::uint16_t k = 0; k < 6; ++k) {
    CHECK(list[k] == Action{ActionKind::kForward, 0, k});
    CHECK(list[6 + k] == Action{ActionKind::kForward, 1, k});
  }
}

TEST_CASE("schedule file: what is written is read back") {
  for (const Schedule s : {Schedule::kOneFOneB, Schedule::kInterleaved, Schedule::kZbV, Schedule::kDualPipe}) {
    const Placement placement = placement_of(s, 4, s == Schedule::kInterleaved ? 2 : 1);
    const auto lists = make_schedule(s, placement, 8);
    const WrittenSchedule read = read_schedule(write_schedule(lists, placement), "s.txt", 4, 8);
    CHECK(read.placement == placement);
    CHECK(read.lists == lists);
  }
}

TEST_CASE("schedule file: mistakes are named") {
  const auto error = [](const std::string& text) {
    try {
      read_schedule(text, "s.txt", 2, 2);
    } catch (const UserError& e) {
      return std::string{e.what()};
    }
    return std::string{"accepted"};
  };
  const auto says = [&](const std::string& text, const std::string& part) {
    CAPTURE(text);
    CHECK_MESSAGE(error(text).find(part) != std::string::npos, error(text));
  };
  const std::string one = "stage 1: F0 B0 F1 B1\n";
  CHECK(error("stage 0: F0 F1 B0 B1 # all\n" + one) == "accepted");
  CHECK(error("stage 0: F0 F1 B0 B1 W0 W1\n" + one) == "accepted");
  says("stage 0: F0 F1 B0 X1\n" + one, "s.txt:1:19: error: parallel.schedule_file: not a pass");
  says("stage 0: F0 F1 B0 B2\n" + one, "s.txt:1:19: error: parallel.schedule_file: no such micro-batch");
  says("stage 0: F0 F1 B0 B1.1\n" + one, "no such chunk");
  says("stage 0: F0 F1 B0\n" + one, "stage 0: micro-batch 1 has no B");
  CHECK(error("stage 0: F0 F1 B0 B1 W0\n" + one) == "accepted");  // W of 0 apart, of 1 with its B
  says("stage 0: F0 F1 B0 B0 B1\n" + one, "stage 0: B0 runs a second time");
  says("stage 0: F0 B1 F1 B0\n" + one, "B1 before its forward pass");
  says("stage 0: F0 F1 W0 B0 B1\n" + one, "W0 before its B");
  says("stage 0: F1 B1 F0 B0\n" + one, "the stages wait for each other for ever");
  says("stage 0: F0 F1 B0 B1\n", "stage 1 has no list");
  says("stage 2: F0\n", "s.txt:1:7: error: parallel.schedule_file: no such stage");
  says("placement round\n" + one, "no such placement");
  says("F0 B0\n", "not a line of a schedule");
}

// Llama 3 405B: 126 layers in 128 parts, the first and the last without a layer.
TEST_CASE("schedule: layers of chunks") {
  Strategy s;
  s.pp = 2;
  s.virtual_stages = 2;
  s.sequence = 256;
  s.global_batch = 4;
  const workload::ModelShape shape = test::gpt_shape(2, 256, 4);
  CHECK(check(shape, s).empty());  // 0, 1, 1, 0
  s.layers_per_stage = {1, 0, 0, 1};
  CHECK(check(shape, s).at(0).path == "parallel.layers_per_stage");
  s.layers_per_stage = {0, 1, 1};
  CHECK(check(shape, s).at(0).expected == "4 numbers (2 stages x 2 chunks)");
  s.layers_per_stage = {0, 2, 1, 0};
  CHECK(check(shape, s).at(0).expected == "numbers that add up to 2 (model.layers)");
}

// Legal: zero 0 and 1 with everything; 2 and 3 where passes give both gradients, one at a time. The others are refused with both keys.
TEST_CASE("schedule: data-parallel modes") {
  workload::ModelShape shape = test::gpt_shape(8, 256, 4);
  shape.tied_embeddings = false;  // or ZeRO-2 and 3 are refused for another reason
  for (std::uint8_t n = 0; n < static_cast<std::uint8_t>(Schedule::kFile); ++n) {
    for (int zero = 0; zero <= 3; ++zero) {
      for (const bool overlap : {false, true}) {
        Strategy s;
        s.pp = 4;
        s.dp = 2;
        s.sequence = 256;
        s.global_batch = 2 * 8;
        s.schedule = Schedule{n};
        s.virtual_stages = s.schedule == Schedule::kInterleaved ? 2 : 1;
        s.zero = zero;
        s.overlap_grad_reduce = overlap;
        s.overlap_param_gather = overlap;
        s.bucket = Bytes{1'000'000};
        CAPTURE(std::string{name_of(s.schedule)});
        CAPTURE(zero);
        const auto problems = check(shape, s);
        const bool whole_passes = is_plain(s) || s.schedule == Schedule::kOneFOneBOverlap || s.schedule == Schedule::kInterleaved;
        const bool legal = zero <= 1 || whole_passes;
        REQUIRE(problems.empty() == legal);
        if (!legal) {
          CHECK(problems.at(0).path == "parallel.zero");
          CHECK(problems.at(0).other_path == "parallel.schedule");
          continue;
        }
        const plan::Plan plan = make_plan(shape, s);
        // Every gradient is reduced once.
        for (const plan::Program& program : plan.programs) {
          if (zero > 1) continue;
          const auto reduced = test::sum_collectives(
              program, plan::Purpose::kData, zero == 0 ? plan::CollectiveKind::kAllReduce : plan::CollectiveKind::kReduceScatter);
          const std::int64_t gradients = test::holdings(program).end_of(plan::Category::kGradients);
          CHECK(reduced.bytes >= gradients);
          CHECK(reduced.bytes <= gradients + reduced.count * 4);
        }
      }
    }
  }
}

TEST_SUITE_END();
