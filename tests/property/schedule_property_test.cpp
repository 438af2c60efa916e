// Every schedule, p 1 .. 8 stages, m 1 .. 16 micro-batches, v 1 .. 4 chunks: complete, free of deadlock, sound
// as a plan; and the simulator's bubble is that of the formulas where passes cost the same and links nothing.
#include <doctest/doctest.h>

#include <cmath>
#include <map>

#include "models/parallel/planner.hpp"
#include "models/parallel/stage_program.hpp"
#include "sim/plan/check.hpp"
#include "tests/support/run_fixture.hpp"
#include "tests/support/workload_shapes.hpp"

using namespace stepcast;
using namespace stepcast::parallel;

TEST_SUITE_BEGIN("property");

namespace {

bool fits(Schedule s, std::int32_t p, std::int64_t m, std::int32_t v) {
  if ((v > 1) != (s == Schedule::kInterleaved)) return false;
  if (s == Schedule::kInterleaved) return p > 1 && m >= p;
  if (s == Schedule::kDualPipe) return p % 2 == 0 && m % 2 == 0 && m >= 2 * p;
  if (s == Schedule::kDualPipeV) return m >= 2 * p;
  return true;
}

// F, B and W of each micro-batch that passes the chunk, once each, in that order.
void check_complete(const ActionList& list, const Placement& placement, std::int64_t m) {
  std::map<std::pair<int, int>, std::array<std::size_t, 3>> at;  // positions + 1
  for (std::size_t i = 0; i < list.size(); ++i) {
    for (const Pass& pass : Passes{list[i]}) {
      auto& [f, b, w] = at[{pass.chunk, pass.micro_batch}];
      for (auto& [given, place] : {std::pair{is_forward(pass), &f}, {gives_input_gradient(pass), &b}, {gives_weight_gradient(pass), &w}}) {
        if (!given) continue;
        CHECK(*place == 0);
        *place = i + 1;
      }
    }
  }
  const std::int64_t each = placement.arrangement == Arrangement::kDual ? m / 2 : m;
  CHECK(static_cast<std::int64_t>(at.size()) == each * placement.chunks);
  for (const auto& [pass, place] : at) {
    CHECK(place[0] > 0);
    CHECK(place[0] < place[1]);
    CHECK(place[1] <= place[2]);
  }
}

template <class Visit>
void for_all(Visit visit) {
  for (std::uint8_t s = 0; s < static_cast<std::uint8_t>(Schedule::kFile); ++s) {
    for (std::int32_t p = 1; p <= 8; ++p) {
      for (std::int64_t m = 1; m <= 16; ++m) {
        for (std::int32_t v = 1; v <= 4; ++v) {
          if (fits(Schedule{s}, p, m, v)) visit(Schedule{s}, p, m, v);
        }
      }
    }
  }
}

// One block a chunk whose passes cost 80 s each; messages of one byte.
plan::Plan equal_passes(Schedule schedule, std::int32_t p, std::int64_t m, std::int32_t v) {
  using workload::Operator;
  const auto pass = [](plan::Pass what) {
    plan::Kernel kernel = run::testing::milliseconds_of_work(80'000);
    kernel.pass = what;
    return Operator{"pass", kernel};
  };
  workload::Block block;
  block.name = "part";
  block.forward = {pass(plan::Pass::kForward)};
  block.backward = {pass(plan::Pass::kInputGrad), pass(plan::Pass::kWeightGrad)};
  block.saved = {{"saved", Bytes{1024}}};
  Strategy s;
  s.pp = p;
  s.virtual_stages = v;
  s.global_batch = m;
  s.sequence = 1;
  s.schedule = schedule;
  s.clip_gradients = false;
  const Placement placement = placement_of(s);
  const auto lists = schedule_of(s);
  const MessagePlan messages = plan_messages(lists, placement, play(lists, placement), is_plain(s));
  plan::Plan plan;
  plan.name = "equal passes";
  plan.degrees[plan::Axis::kPipeline] = p;
  const Groups groups;
  for (std::int32_t stage = 0; stage < p; ++stage) {
    StageModel model;
    model.stage = stage;
    model.placement = placement;
    model.boundary = Bytes{1};
    for (std::int32_t c = 0; c < placement.chunks; ++c) {
      model.chunks.push_back({model.blocks.size(), 1});
      model.blocks.push_back({&block, BlockRole::kLayer, static_cast<std::uint16_t>(c)});
    }
    plan.program_of_stage.emplace_back(plan.programs.size());
    plan.programs.push_back(make_stage_program({model, s, groups, lists[static_cast<std::size_t>(stage)], messages}));
  }
  return plan;
}

}  // namespace

TEST_CASE("schedule: complete and free of deadlock") {
  int count = 0;
  for_all([&](Schedule s, std::int32_t p, std::int64_t m, std::int32_t v) {
    CAPTURE(std::string{name_of(s)});
    CAPTURE(p);
    CAPTURE(m);
    CAPTURE(v);
    const Placement placement = placement_of(s, p, v);
    const auto lists = make_schedule(s, placement, m);
    for (const ActionList& list : lists) check_complete(list, placement, m);
    CHECK(!play(lists, placement).deadlock);
    const plan::Plan plan = equal_passes(s, p, m, v);
    const auto faults = plan::check(plan);
    if (!faults.empty()) FAIL_CHECK(to_text(faults.front()));
    ++count;
  });
  CHECK(count > 1000);
}

// Real blocks: memory comes back, the plan check finds nothing.
TEST_CASE("schedule: plans of a small model are sound") {
  const workload::ModelShape shape = test::gpt_shape(16, 256, 4);
  for_all([&](Schedule schedule, std::int32_t p, std::int64_t m, std::int32_t v) {
    if (m % 5 != 1 && m != 16) return;  // 1, 6, 11, 16
    if (p == 1 && placement_of(schedule, p, v).chunks > 1) return;  // refused: nothing to cut
    CAPTURE(std::string{name_of(schedule)});
    CAPTURE(p);
    CAPTURE(m);
    CAPTURE(v);
    Strategy s;
    s.pp = p;
    s.dp = 2;
    s.tp = 2;
    s.sequence_parallel = true;
    s.zero = 1;
    s.virtual_stages = v;
    s.global_batch = 2 * m;
    s.sequence = 256;
    s.schedule = schedule;
    if (p * placement_of(s).chunks > shape.layers + 2) return;
    REQUIRE(check(shape, s).empty());
    const auto faults = plan::check(make_plan(shape, s));
    if (!faults.empty()) FAIL_CHECK(to_text(faults.front()));
  });
}

// The simulator against the unit-cost timeline: passes of 80 s, so that microseconds of latency, launches
// and the optimizer's empty kernels are below 1e-6 of a pass; one in 1e5 is allowed.
TEST_CASE("schedule: the simulator's step is the timeline's") {
  const run::testing::TestCluster cluster{1};
  const double unit = 80.0;
  int count = 0;
  for_all([&](Schedule s, std::int32_t p, std::int64_t m, std::int32_t v) {
    if (p % 2 != 0 || (m != 5 && m != 12 && m != 16)) return;
    CAPTURE(std::string{name_of(s)});
    CAPTURE(p);
    CAPTURE(m);
    CAPTURE(v);
    const plan::Plan plan = equal_passes(s, p, m, v);
    const run::Result result = run::simulate(plan, cluster.machine(), {});
    const Placement placement = placement_of(s, p, v);
    const Timeline timeline = play(make_schedule(s, placement, m), placement);
    CHECK(result.step.seconds() == doctest::Approx(unit * static_cast<double>(timeline.length())).epsilon(1e-5));
    CHECK(result.breakdown.total() == result.step);
    ++count;
  });
  CHECK(count > 50);
}

TEST_SUITE_END();
