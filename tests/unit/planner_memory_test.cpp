#include <doctest/doctest.h>

#include "models/parallel/planner.hpp"
#include "tests/support/plan_sums.hpp"
#include "tests/support/workload_shapes.hpp"

using namespace stepcast;
using namespace stepcast::parallel;
using namespace stepcast::test;
using plan::Category;

TEST_SUITE_BEGIN("unit");

namespace {

Strategy mixed_precision(int zero, std::int32_t dp) {
  Strategy s;
  s.sequence = 1024;
  s.dp = dp;
  s.global_batch = dp;
  s.zero = zero;
  s.dtype = plan::Dtype::kFp16;
  s.gradient_dtype = plan::Dtype::kFp16;
  return s;
}

}  // namespace

// Llama-3-8B on 8 GPUs, ZeRO-0, bf16 with fp32 gradients, master and Adam: 2, 4 and 12 bytes for each of
// P = 2 V h + 32 (h (32 + 16) 128 + 4096 h + 3 h f + 2 h) + h = 8,030,261,248 parameters (V 128256 is
// a multiple of 128).
TEST_CASE("planner: Llama-3-8B over 8 data-parallel ranks") {
  Strategy s;
  s.sequence = 8192;
  s.dp = 8;
  s.global_batch = 8;
  const plan::Plan plan = make_plan(llama3_8b(), s);
  CHECK(plan.world_size() == 8);
  CHECK(plan.work.samples == 8);
  CHECK(plan.work.tokens == 65536);
  const Holdings held = holdings(plan.programs[0]);
  const std::int64_t p = 8'030'261'248;
  CHECK(held.end_of(Category::kParameters) == 2 * p);
  CHECK(held.end_of(Category::kGradients) == 4 * p);
  CHECK(held.end_of(Category::kOptimizer) == 12 * p);
  CHECK(held.end_of(Category::kActivations) == 0);
  // What stands for weight gradients: one tensor a shape, qkv, out, gate and up, down.
  CHECK(held.end_of(Category::kWorkspace) == 2 * 4096LL * (6144 + 4096 + 28672 + 14336));
  CHECK(held.end_of(Category::kCommunication) == 0);
}

// ZeRO (Rajbhandari et al. 2020, figure 1 and table 1): 7.5 billion parameters, 64 ranks, fp16 with Adam:
// 120, 31.4, 16.6, 1.9 GB. The plan's persistent bytes per parameter, times 7.5e9.
TEST_CASE("planner: the ZeRO paper's memory table from the plan's buffers") {
  struct Row {
    std::int32_t dp;
    std::array<double, 4> gigabytes;
  };
  // Columns: baseline, P_os, P_os+g, P_os+g+p.
  for (const Row& row : {Row{4, {120, 52.5, 41.25, 30}}, Row{16, {120, 35.62, 21.56, 7.5}},
                         Row{64, {120, 31.41, 16.64, 1.88}}, Row{256, {120, 30.35, 15.41, 0.47}},
                         Row{1024, {120, 30.09, 15.1, 0.12}}}) {
    for (int zero = 0; zero <= 3; ++zero) {
      CAPTURE(row.dp);
      CAPTURE(zero);
      const workload::ModelShape shape = gpt_shape(36, 4096, 32);
      const plan::Program program = make_plan(shape, mixed_precision(zero, row.dp)).programs[0];
      const Holdings held = holdings(program);
      const auto persistent = static_cast<double>(held.end_of(Category::kParameters) + held.end_of(Category::kGradients) +
                                                  held.end_of(Category::kOptimizer));
      const double parameters = static_cast<double>(count_parameters(shape).total);
      // The table is rounded to 0.01 GB.
      CHECK(std::abs(7.5 * persistent / parameters - row.gigabytes[static_cast<std::size_t>(zero)]) < 0.0051);
    }
  }
}

// What a stage of a pipeline keeps at the peak of 1F1B: (p - i) micro-batches of each of its layers.
TEST_CASE("planner: activations at the peak") {
  Strategy s;
  s.sequence = 512;
  s.pp = 2;
  s.global_batch = 4;
  const workload::ModelShape shape = gpt_shape(4, 256, 4);
  const plan::Plan plan = make_plan(shape, s);
  workload::BlockOptions options;
  options.sequence = 512;
  const std::int64_t layer = saved_bytes(make_layer(shape, 0, options));
  const std::int64_t head = saved_bytes(make_head(shape, options, false));
  CHECK(holdings(plan.programs[0]).peak_of(Category::kActivations) == 2 * 2 * layer);
  CHECK(holdings(plan.programs[1]).peak_of(Category::kActivations) == 2 * layer + head);
}

// A layer's workspace takes the place of the last one's; taken first, what is saved would settle there and cut it up.
TEST_CASE("planner: a forward pass takes its workspace before what it saves") {
  Strategy s;
  s.sequence = 512;
  const plan::Program program = make_plan(gpt_shape(2, 256, 4), s).programs[0];
  std::string order;
  for (const plan::Instruction& i : program.instructions)
    if (std::holds_alternative<plan::Alloc>(i.body) && i.stage == plan::Stage::kForward && i.layer == 0)
      order += std::string{label_of(program, i)} + " ";
  CHECK(order == "layer.workspace layer.saved ");
}

TEST_CASE("planner: full recomputation keeps layer inputs and one layer's activations") {
  Strategy s;
  s.sequence = 512;
  s.global_batch = 2;
  s.recompute = workload::Recompute::kFull;
  const workload::ModelShape shape = gpt_shape(4, 256, 4);
  workload::BlockOptions options;
  options.sequence = 512;
  options.recompute = workload::Recompute::kFull;
  const workload::Block layer = make_layer(shape, 0, options);
  const std::int64_t head = saved_bytes(make_head(shape, options, true));
  const plan::Program program = make_plan(shape, s).programs[0];
  CHECK(holdings(program).peak_of(Category::kActivations) ==
        4 * saved_bytes(layer) + std::max(head, layer.recompute_peak.count()));
}

// Two units of ZeRO-3 beside the root at prefetch 1; two full gradients at a time.
TEST_CASE("planner: gathered units and full gradients are bounded") {
  Strategy s = mixed_precision(3, 4);
  s.global_batch = 8;
  for (const std::int32_t prefetch : {0, 1, 2}) {
    s.prefetch = prefetch;
    const workload::ModelShape shape = gpt_shape(6, 256, 4);
    const plan::Program program = make_plan(shape, s).programs[0];
    CHECK(most_alive(program, "parameter.unit") == 1 + 1 + prefetch);
    CHECK(most_alive(program, "gradient.unit") == 3);  // the root's is open through the backward pass
  }
}

TEST_SUITE_END();
