#include <algorithm>

#include <doctest/doctest.h>

#include "models/parallel/partition.hpp"
#include "models/parallel/planner.hpp"
#include "models/parallel/schedule.hpp"
#include "tests/support/plan_sums.hpp"
#include "tests/support/workload_shapes.hpp"

using namespace stepcast;
using namespace stepcast::parallel;
using namespace stepcast::test;

TEST_SUITE_BEGIN("unit");

namespace {

std::vector<std::int64_t> counts(std::int64_t layers, std::int32_t stages) {
  std::vector<std::int64_t> result;
  for (const LayerRange& range : split_layers(layers, stages)) result.push_back(range.count);
  return result;
}

plan::Plan pipeline(Schedule schedule, std::int64_t m) {
  Strategy s;
  s.pp = 4;
  s.sequence = 512;
  s.global_batch = m;
  s.schedule = schedule;
  return make_plan(gpt_shape(8, 256, 4), s);
}

}  // namespace

TEST_CASE("planner: layers over stages, the extra ones in the middle") {
  using Counts = std::vector<std::int64_t>;
  CHECK(counts(32, 4) == Counts{8, 8, 8, 8});
  CHECK(counts(10, 4) == Counts{2, 3, 3, 2});
  CHECK(counts(9, 4) == Counts{2, 3, 2, 2});   // (4 - 1) / 2 = 1
  CHECK(counts(11, 4) == Counts{3, 3, 3, 2});  // the stage with the head is the short one
  CHECK(counts(126, 16) == Counts{7, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 7});
  const auto ranges = split_layers(126, 16);
  CHECK(ranges[1].first == 7);
  CHECK(ranges[15].first == 119);
}

// p = 4, m = 8. Warm-up forwards: 3, 2, 1, 0; then one forward, one backward; then the backwards left.
TEST_CASE("planner: 1F1B order of p = 4, m = 8") {
  const plan::Plan plan = pipeline(Schedule::kOneFOneB, 8);
  CHECK(pass_order(plan.programs[0]) == "F0 F1 F2 F3 B0 F4 B1 F5 B2 F6 B3 F7 B4 B5 B6 B7");
  CHECK(pass_order(plan.programs[1]) == "F0 F1 F2 B0 F3 B1 F4 B2 F5 B3 F6 B4 F7 B5 B6 B7");
  CHECK(pass_order(plan.programs[2]) == "F0 F1 B0 F2 B1 F3 B2 F4 B3 F5 B4 F6 B5 F7 B6 B7");
  CHECK(pass_order(plan.programs[3]) == "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5 F6 B6 F7 B7");
}

// Stage 0 of 4 with 8 micro-batches sends 8 activations and gets 8 gradients; stage 1 sends and gets both. A wait for the device after
// each message sent and each awaited one; or after each of the 16 passes and each message awaited.
TEST_CASE("planner: the host waits for messages, or for passes too") {
  const auto waits = [](HostWaits when, std::size_t stage) {
    Strategy s;
    s.pp = 4;
    s.sequence = 512;
    s.global_batch = 8;
    s.host_waits = when;
    const plan::Plan plan = make_plan(gpt_shape(8, 256, 4), s);
    const plan::Program& program = plan.programs[stage];
    return std::count_if(program.instructions.begin(), program.instructions.end(), [&](const plan::Instruction& i) {
      return std::holds_alternative<plan::Wait>(i.body) && program.streams[i.stream.index()].kind == plan::StreamKind::kIssue;
    });
  };
  CHECK(waits(HostWaits::kNever, 0) == 0);
  CHECK(waits(HostWaits::kMessages, 0) == 8 + 8);
  CHECK(waits(HostWaits::kMessages, 1) == 16 + 16);
  CHECK(waits(HostWaits::kPasses, 0) == 16 + 8);
  CHECK(waits(HostWaits::kPasses, 1) == 16 + 16);
}

// After each of four layers and the one unit of both ends: for the reduction, and for the copy of its shard to the host.
TEST_CASE("planner: the host waits for gradients") {
  Strategy s;
  s.dp = 2;
  s.zero = 3;
  s.sequence = 512;
  s.global_batch = 2;
  s.offload = {.master = true, .momentum = true, .variance = true, .gradients = true, .update_on_host = true};
  const auto waits = [&](HostWaits when) {
    s.host_waits = when;
    const plan::Program program = make_plan(gpt_shape(4, 256, 4), s).programs[0];
    return std::count_if(program.instructions.begin(), program.instructions.end(), [&](const plan::Instruction& i) {
      return std::holds_alternative<plan::Wait>(i.body) && program.streams[i.stream.index()].kind == plan::StreamKind::kIssue;
    });
  };
  CHECK(waits(HostWaits::kNever) == 0);
  CHECK(waits(HostWaits::kGradients) == 2 * 6);  // blocks: embedding, layers, head
  // Before each gather, for compute, the gathers before it and reductions: the ends' unit once, four layers forward and backward.
  CHECK(waits(HostWaits::kGathers) == 3 * (1 + 2 * 4));
  s.gather_by_matrix = true;
  CHECK(waits(HostWaits::kGathers) == 3 * (1 + 2 * 4 * 4));
  s.gather_by_matrix = false;
  s.zero = 2;
  CHECK(check(gpt_shape(4, 256, 4), s).at(0).path == "training.host_waits");
}

// A wait after each kernel and collective of the passes, and what the kernels are does not change.
TEST_CASE("planner: the host waits for each kernel") {
  Strategy s;
  s.tp = 2;
  s.sequence = 512;
  s.global_batch = 2;
  const auto program = [&](HostWaits when) {
    s.host_waits = when;
    return make_plan(gpt_shape(4, 256, 4), s).programs[0];
  };
  const auto count = [](const plan::Program& of, auto is) { return std::count_if(of.instructions.begin(), of.instructions.end(), is); };
  const auto launched = [](const plan::Instruction& i) {
    const bool in_pass = i.stage != plan::Stage::kOptimizer && i.stage != plan::Stage::kGradientSync && i.stage != plan::Stage::kInput;
    return in_pass && (std::holds_alternative<plan::Compute>(i.body) || std::holds_alternative<plan::Collective>(i.body));
  };
  const plan::Program never = program(HostWaits::kNever);
  const plan::Program kernels = program(HostWaits::kKernels);
  const auto waits = count(kernels, [&](const plan::Instruction& i) {
    return std::holds_alternative<plan::Wait>(i.body) && kernels.streams[i.stream.index()].kind == plan::StreamKind::kIssue;
  });
  CHECK(waits > 100);
  CHECK(waits == count(kernels, launched));
  CHECK(count(never, launched) == count(kernels, launched));
}

TEST_CASE("planner: GPipe order of p = 4, m = 8") {
  const plan::Plan plan = pipeline(Schedule::kGpipe, 8);
  for (const plan::Program& program : plan.programs)
    CHECK(pass_order(program) == "F0 F1 F2 F3 F4 F5 F6 F7 B0 B1 B2 B3 B4 B5 B6 B7");
}

// Two layers a stage keep their activations: 2 min(p - i, m) under 1F1B, 2 m under GPipe.
TEST_CASE("planner: micro-batches alive at the peak") {
  for (const std::int64_t m : {1, 2, 3, 8}) {
    CAPTURE(m);
    const plan::Plan one = pipeline(Schedule::kOneFOneB, m);
    const plan::Plan gpipe = pipeline(Schedule::kGpipe, m);
    for (std::int64_t stage = 0; stage < 4; ++stage) {
      CHECK(most_alive(one.programs[static_cast<std::size_t>(stage)], "layer.saved") == 2 * std::min(4 - stage, m));
      CHECK(most_alive(gpipe.programs[static_cast<std::size_t>(stage)], "layer.saved") == 2 * m);
    }
  }
}

TEST_CASE("planner: a single stage runs forward and backward in turn, and synchronises in the last") {
  Strategy s;
  s.dp = 2;
  s.sequence = 512;
  s.global_batch = 6;
  const plan::Plan plan = make_plan(gpt_shape(4, 256, 4), s);
  CHECK(plan.programs.size() == 1);
  CHECK(pass_order(plan.programs[0]) == "F0 B0 F1 B1 F2 B2");
  const auto in_last = sum_collectives(plan.programs[0], [](const plan::Instruction& i, const plan::Collective&) {
    return i.micro_batch == 2;
  });
  const auto all = sum_collectives(plan.programs[0], plan::Purpose::kData, plan::CollectiveKind::kAllReduce);
  CHECK(in_last == all);
  CHECK(all.count > 0);
}

TEST_SUITE_END();
