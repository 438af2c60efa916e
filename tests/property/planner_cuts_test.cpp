// Random legal mixes of recomputation, adapters, formats and synchronisation, with and without images: their plans
// are sound, nothing that a pass holds is left at the end, and with everything frozen no more is reduced than trained.
#include <doctest/doctest.h>

#include "models/parallel/planner.hpp"
#include "models/parallel/stage_model.hpp"
#include "models/parallel/state.hpp"
#include "sim/base/random.hpp"
#include "sim/plan/check.hpp"
#include "tests/support/plan_sums.hpp"
#include "tests/support/workload_shapes.hpp"

using namespace stepcast;
using namespace stepcast::parallel;
using namespace stepcast::test;
using plan::Category;
using workload::Recompute;

TEST_SUITE_BEGIN("property");

namespace {

template <class T>
T pick(Rng& rng, std::initializer_list<T> choices) {
  return choices.begin()[rng.below(choices.size())];
}
bool coin(Rng& rng) { return rng.below(2) == 0; }

workload::ModelShape random_shape(Rng& rng) {
  workload::ModelShape shape = llama3_8b();
  shape.layers = 2 + static_cast<std::int64_t>(rng.below(7));
  shape.hidden = 512;
  shape.heads = 8;
  shape.kv_heads = pick<std::int64_t>(rng, {8, 4});
  shape.head_dim = 64;
  shape.ffn = 1024;
  shape.vocab = 4096;
  shape.gated_mlp = coin(rng);
  if (rng.below(3) == 0) shape.experts = workload::ExpertShape{.count = 8, .top_k = 2, .ffn = 256, .shared_ffn = coin(rng) ? 512 : 0};
  if (rng.below(4) == 0) {
    shape.vision = workload::VisionTower{.layers = 2, .hidden = 256, .heads = 4, .ffn = 512, .patch = 14, .patch_values = 588, .positions = 64,
                                         .merged = 4, .projector = {512}, .projector_norm = true, .images = 2, .image_size = 112};
  }
  return shape;
}

Strategy random_strategy(Rng& rng, const workload::ModelShape& shape) {
  Strategy s;
  s.tp = pick(rng, {1, 2, 4});
  s.dp = pick(rng, {1, 2});
  s.pp = pick(rng, {1, 2});
  if (shape.experts) {
    s.ep = pick(rng, {1, 2});
    s.etp = 1;
  }
  s.sequence_parallel = s.tp > 1 && (shape.experts || coin(rng));
  s.schedule = pick(rng, {Schedule::kOneFOneB, Schedule::kGpipe, Schedule::kInterleaved, Schedule::kZbH1});
  s.virtual_stages = s.schedule == Schedule::kInterleaved ? 2 : 1;
  s.micro_batch = pick<std::int64_t>(rng, {1, 2});
  s.global_batch = s.dp * s.micro_batch * static_cast<std::int64_t>(2 + rng.below(3));
  s.sequence = 256;
  s.zero = static_cast<int>(rng.below(4));
  s.reshard_after_forward = coin(rng);
  s.overlap_grad_reduce = coin(rng);
  if (coin(rng)) s.sync_every = coin(rng);
  s.gradient_dtype = pick(rng, {plan::Dtype::kBf16, plan::Dtype::kFp32});
  if (coin(rng)) s.reduce_dtype = plan::Dtype::kFp32;
  s.state_dtype = pick(rng, {plan::Dtype::kBf16, plan::Dtype::kFp32});
  if (coin(rng)) s.gemm_dtype = plan::Dtype::kFp8;
  s.fp8_gather = s.gemm_dtype && s.zero > 0 && coin(rng);
  s.recompute = pick(rng, {Recompute::kNone, Recompute::kSelective, Recompute::kOperators, Recompute::kFull});
  s.recompute_span = pick(rng, {RecomputeSpan::kUniform, RecomputeSpan::kBlock, RecomputeSpan::kEvery});
  s.recompute_layers = 1 + static_cast<std::int64_t>(rng.below(3));
  workload::RecomputeParts& parts = s.recompute_parts;
  for (bool* part : {&parts.attention_core, &parts.norms, &parts.expert_activations, &parts.mlp_activations, &parts.qkv, &parts.attention, &parts.up,
                     &parts.mlp, &parts.experts, &parts.shared})
    *part = coin(rng);
  if (coin(rng)) {
    s.adapters = workload::Adapters{.rank = 8, .qkv = true, .out = coin(rng), .up = coin(rng), .down = coin(rng), .base = std::nullopt};
    if (coin(rng)) s.adapters->base = workload::FourBits{coin(rng)};
  }
  return s;
}

}  // namespace

TEST_CASE("planner: random recomputation, adapters and formats give sound plans") {
  int legal = 0;
  int frozen = 0;
  int seen = 0;
  for (std::uint64_t seed = 0; seed < 800; ++seed) {
    CAPTURE(seed);
    Rng rng{seed, "planner cuts"};
    const workload::ModelShape shape = random_shape(rng);
    const Strategy s = random_strategy(rng, shape);
    if (!check(shape, s).empty()) continue;
    ++legal;
    frozen += s.adapters ? 1 : 0;
    seen += has_images(shape) ? 1 : 0;
    const plan::Plan plan = make_plan(shape, s);
    const auto faults = plan::check(plan);
    if (!faults.empty()) FAIL_CHECK(to_text(faults.front()));
    const ModelBlocks blocks = make_blocks(shape, s);
    for (const StageModel& model : split_stages(blocks, s)) {
      const plan::Program& program = plan.programs[plan.program_of_stage[static_cast<std::size_t>(model.stage)].index()];
      const Holdings held = holdings(program);
      CHECK(held.end_of(Category::kActivations) == 0);
      CHECK(held.end_of(Category::kWorkspace) == persistent_state(model, s).placeholders.count());
      if (!s.adapters || s.dp == 1 || s.zero > 0) continue;
      const std::int64_t reduced = sum_collectives(program, plan::Purpose::kData, plan::CollectiveKind::kAllReduce).bytes;
      const std::int64_t times = syncs_every(s) ? micro_batches(s) : 1;
      CHECK(reduced <= times * model.parameters * plan::element_bytes(reduce_dtype(s)) + 4);
    }
  }
  CHECK(legal > 150);
  CHECK(frozen > 40);
  CHECK(seen > 15);
}

TEST_SUITE_END();
