#include <doctest/doctest.h>

#include "sim/plan/builder.hpp"
#include "sim/plan/check.hpp"
#include "sim/plan/print.hpp"

using namespace stepcast;
using namespace stepcast::literals;
using namespace stepcast::plan;

TEST_SUITE_BEGIN("unit");

namespace {

// Two stages that exchange one activation and one gradient on one stream each; `swapped` makes
// stage 1 send the gradient before it receives the activation.
Plan exchange(bool swapped) {
  Plan plan;
  plan.degrees[Axis::kPipeline] = 2;
  plan.degrees[Axis::kTensor] = 4;
  ProgramBuilder first{"stage 0"};
  const StreamId pp = first.stream(StreamKind::kCommunication, "pp");
  first.context({Stage::kForward, std::nullopt, std::uint16_t{0}});
  first.send(pp, "activation", 1, 1_MiB);
  first.recv(pp, "gradient", 1, 2_MiB);
  ProgramBuilder second{"stage 1"};
  second.stream(StreamKind::kCommunication, "pp");
  second.context({Stage::kForward, std::nullopt, std::uint16_t{0}});
  if (swapped) second.send(pp, "gradient", 0, 2_MiB);
  second.recv(pp, "activation", 0, 1_MiB);
  if (!swapped) second.send(pp, "gradient", 0, 2_MiB);
  plan.programs = {std::move(first).finish(), std::move(second).finish()};
  plan.program_of_stage = {ProgramId{std::size_t{0}}, ProgramId{std::size_t{1}}};
  return plan;
}

}  // namespace

TEST_CASE("plan check: an exchange in the right order is sound") { CHECK(check(exchange(false)).empty()); }

TEST_CASE("plan check: two stages that both send first wait for each other, and the error says for what") {
  const auto errors = check(exchange(true));
  REQUIRE(errors.size() == 1);
  CHECK(errors[0].fault == PlanFault::kDeadlock);
  CHECK(to_text(errors[0]) ==
        "worker 0 (stage 0), instruction 0 (send 'activation', micro-batch 0): the plan stops here: 2 streams wait for "
        "each other in a circle, 2 are blocked\n"
        "    stage 0, stream 'pp': instruction 0 (send 'activation', micro-batch 0) waits for instruction 1 (recv "
        "'activation', micro-batch 0) of stage 1, queued on stream 'pp' behind instruction 0 (send 'gradient', "
        "micro-batch 0)\n"
        "    stage 1, stream 'pp': instruction 0 (send 'gradient', micro-batch 0) waits for instruction 1 (recv "
        "'gradient', micro-batch 0) of stage 0, queued on stream 'pp' behind instruction 0 (send 'activation', "
        "micro-batch 0)\n"
        "  hint: reorder one of the stages, or move one of the operations to a stream of its own");
}

TEST_CASE("plan check: the worker named is the first that runs the program") {
  Plan plan = exchange(false);
  std::get<Send>(plan.programs[1].instructions[1].body).bytes = 3_MiB;
  const auto errors = check(plan);
  REQUIRE(errors.size() == 1);
  CHECK(errors[0].fault == PlanFault::kMessageSize);
  CHECK(errors[0].worker == RankId{std::size_t{4}});  // tp 4: stage 1 begins at rank 4
  CHECK(to_text(errors[0]).starts_with("worker 4 (stage 1), instruction 1 (send 'gradient', micro-batch 0): message 0 "
                                       "from stage 1 to stage 0 has 3145728 bytes, but instruction 1 of stage 0"));
}

TEST_CASE("plan check: a collective of a group of one is no error") {
  Plan plan;
  plan.groups = {{"dp", {Axis::kData}, {}}};
  ProgramBuilder b{"all"};
  b.collective(b.stream(StreamKind::kCommunication, "dp"), "reduce", {.group = GroupId{std::size_t{0}}, .bytes = 8_B});
  plan.programs = {std::move(b).finish()};
  plan.program_of_stage = {ProgramId{std::size_t{0}}};
  CHECK(check(plan).empty());
}

// Three ranks, so three values; an all-reduce has no parts to be unequal.
TEST_CASE("plan check: volumes fit their group and their collective") {
  Plan plan;
  plan.degrees[Axis::kData] = 3;
  plan.groups = {{"dp", {Axis::kData}, {}}};
  plan.volumes = {{.name = "hot", .form = VolumeForm::kReceivers, .values = {2, 1, 1}}};
  ProgramBuilder b{"all"};
  b.collective(b.stream(StreamKind::kCommunication, "ep"), "dispatch",
               {.kind = CollectiveKind::kAllToAll, .group = GroupId{0u}, .bytes = 8_B, .volumes = VolumesId{0u}});
  plan.programs = {std::move(b).finish()};
  plan.program_of_stage = {ProgramId{0u}};
  CHECK(check(plan).empty());
  const auto fault = [](const Plan& bad) {
    const auto errors = check(bad);
    REQUIRE(errors.size() == 1);
    CHECK(errors[0].fault == PlanFault::kVolumes);
    return to_text(errors[0]);
  };
  Plan bad = plan;
  bad.volumes[0].values = {2, 1};
  CHECK(fault(bad).find("have 2 values by receivers, group 'dp' has 3 ranks") != std::string::npos);
  bad.volumes[0].values = {0, 0, 0};
  CHECK(fault(bad).find("nothing is sent") != std::string::npos);
  bad.volumes[0].values = {2, -1, 1};
  CHECK(fault(bad).find("negative") != std::string::npos);
  bad = plan;
  std::get<Collective>(bad.programs[0].instructions[0].body).kind = CollectiveKind::kAllReduce;
  CHECK(fault(bad).find("no all_to_all") != std::string::npos);
  bad = plan;
  bad.volumes[0].values = {3, 1, 1};
  CHECK(diff(plan, bad, 10) == std::vector<std::string>{"volumes hot: 3 values by receivers differ"});
}

TEST_CASE("plan check: errors become one UserError that names the file") {
  Plan plan = exchange(false);
  plan.programs[0].instructions.pop_back();
  CHECK_NOTHROW(require_valid(exchange(false), "good.plan"));
  CHECK_THROWS_WITH_AS(require_valid(plan, "bad.plan"), doctest::Contains("bad.plan: error: worker 4 (stage 1)"), UserError);
}

TEST_CASE("plan check: at most a hundred errors") {
  Plan plan = exchange(false);
  for (int i = 0; i < 500; ++i) {
    Instruction bad = plan.programs[0].instructions[0];
    bad.body = Wait{EventId{std::size_t{9}}};
    plan.programs[0].instructions.push_back(bad);
  }
  CHECK(check(plan).size() == 100);
}

TEST_SUITE_END();
