// What random legal mixes of parallelism send, read off the plan, is what the closed forms say, to the byte.
//
// Symbols  P_d, P_e parameters of a stage per worker, dense and of routed experts; m micro-batches; e_g, e_p, e bytes of
//          a gradient, a parameter, an activation; R = b s / c tokens of a rank; T = R / t with sequence parallelism;
//          L, M layers of the stage, and those of them with experts; k choices a token
//   ZeRO-0   all-reduce e_g P          ZeRO-1  reduce-scatter e_g P, all-gather e_p P   (2 P with equal dtypes)
//   ZeRO-2   reduce-scatter m e_g P, all-gather e_p P
//   ZeRO-3   per micro-batch: all-gather 2 e_p P, reduce-scatter e_g P                  (3 P)
//   TP+SP    a half of a layer: forward gather + scatter, backward gather, gather again, scatter: 5 R h e
//   TP       all-reduce R h e a half and pass
//   EP       dispatch and combine, forward and backward: 4 T k h e a layer with experts
//   CP       ring 3 (c-1) K, all-gather 3 c K, Ulysses 2 (Q + K + O) with K = keys and values of R tokens
#include <doctest/doctest.h>

#include "models/parallel/planner.hpp"
#include "models/parallel/stage_model.hpp"
#include "sim/base/random.hpp"
#include "sim/plan/check.hpp"
#include "tests/support/plan_sums.hpp"
#include "tests/support/workload_shapes.hpp"

using namespace stepcast;
using namespace stepcast::parallel;
using namespace stepcast::test;
using plan::CollectiveKind;
using plan::Purpose;
using workload::ContextStyle;

TEST_SUITE_BEGIN("property");

namespace {

template <class T>
T pick(Rng& rng, std::initializer_list<T> choices) {
  return choices.begin()[rng.below(choices.size())];
}
bool coin(Rng& rng) { return rng.below(2) == 0; }

// Every tensor's size is a multiple of 64, so shards need no padding.
workload::ModelShape random_mixture(Rng& rng) {
  workload::ModelShape shape = llama3_8b();
  shape.layers = 1 + static_cast<std::int64_t>(rng.below(6));
  shape.hidden = 512;
  shape.heads = 16;
  shape.kv_heads = pick<std::int64_t>(rng, {16, 8});
  shape.head_dim = 64;
  shape.ffn = 1024;
  shape.vocab = 4096;
  if (coin(rng)) {
    shape.experts = workload::ExpertShape{.count = 16, .top_k = pick<std::int64_t>(rng, {1, 2, 4}), .ffn = 256};
    if (coin(rng)) shape.experts->shared_ffn = 512;
    if (coin(rng))
      for (std::int64_t i = 0; i < shape.layers; ++i) shape.layer_has_experts.push_back(i % 2 == 1);
  }
  return shape;
}

Strategy random_mix(Rng& rng, const workload::ModelShape& shape) {
  Strategy s;
  s.tp = pick(rng, {1, 2, 4});
  s.cp = pick(rng, {1, 2, 4});
  s.dp = pick(rng, {1, 2, 4});
  s.pp = pick(rng, {1, 2, 3});
  if (shape.experts) {
    s.ep = pick(rng, {1, 2, 4, 8, 16});
    if (coin(rng)) s.etp = pick(rng, {1, 2});
  }
  s.context_style = pick(rng, {ContextStyle::kRing, ContextStyle::kPlainRing, ContextStyle::kAllGather, ContextStyle::kUlysses});
  s.sequence_parallel = s.tp > 1 && (shape.experts || coin(rng));
  s.overlap_shared_experts = coin(rng);
  s.micro_batch = pick<std::int64_t>(rng, {1, 2});
  s.global_batch = s.dp * s.micro_batch * static_cast<std::int64_t>(1 + rng.below(4));
  s.sequence = 512;
  s.zero = static_cast<int>(rng.below(4));
  s.bucket = Bytes{pick<std::int64_t>(rng, {1, 1'000'000, 1'000'000'000})};
  s.overlap_grad_reduce = coin(rng);
  s.overlap_param_gather = coin(rng);
  s.gradient_dtype = pick(rng, {plan::Dtype::kBf16, plan::Dtype::kFp32});
  s.recompute = coin(rng) ? workload::Recompute::kNone : workload::Recompute::kFull;
  return s;
}

std::int64_t sum_over(const plan::Plan& plan, const plan::Program& program, const char* group, std::optional<CollectiveKind> kind = {}) {
  return sum_collectives(program, [&](const plan::Instruction& i, const plan::Collective& c) {
           return plan.groups[c.group.index()].name == group && label_of(program, i) != "optimizer.norm" &&
                  label_of(program, i) != "gradient.partial" && (!kind || c.kind == *kind);
         }).bytes;
}

// Of one kind of parameters on one stage. ZeRO-3's root unit (embedding, head) is gathered while any micro-batch is in
// flight; with one stage and one micro-batch at a time it is gathered once a micro-batch.
void check_data(const plan::Plan& plan, const plan::Program& program, const StageModel& model, const Strategy& s, Kind kind) {
  const char* group = kind == Kind::kExpert ? "edp" : s.cp > 1 ? "dp-cp" : "dp";
  const std::int64_t replicas = kind == Kind::kExpert ? expert_replicas(s) : dense_replicas(s);
  const std::int64_t parameters = replicas > 1 ? model.parameters_of(kind) : 0;
  const std::int64_t gradient = parameters * plan::element_bytes(s.gradient_dtype);
  const std::int64_t weight = parameters * plan::element_bytes(s.dtype);
  CAPTURE(group);
  const auto sum = [&](CollectiveKind what) { return sum_over(plan, program, group, what); };
  switch (s.zero) {
    case 0:
      CHECK(sum(CollectiveKind::kAllReduce) == gradient);
      break;
    case 1:
      CHECK(sum(CollectiveKind::kReduceScatter) == gradient);
      CHECK(sum(CollectiveKind::kAllGather) == weight);
      break;
    case 2:
      CHECK(sum(CollectiveKind::kReduceScatter) == micro_batches(s) * gradient);
      CHECK(sum(CollectiveKind::kAllGather) == weight);
      break;
    default: {
      std::int64_t root = 0;
      for (const StageBlock& block : model.blocks)
        if (block.role != BlockRole::kLayer && kind == Kind::kDense && replicas > 1) root += block.block->parameters;
      CHECK(sum(CollectiveKind::kReduceScatter) == micro_batches(s) * gradient);
      CHECK(sum(CollectiveKind::kAllGather) ==
            micro_batches(s) * (2 * weight - root * plan::element_bytes(s.dtype)));
    }
  }
}

struct Layers {
  std::int64_t all = 0;
  std::int64_t with_experts = 0;
};

void check_layers(const plan::Plan& plan, const plan::Program& program, const workload::ModelShape& shape, const Strategy& s,
                  const Layers& layers, bool has_embedding, bool has_head) {
  const std::int64_t m = micro_batches(s);
  const std::int64_t again = s.recompute == workload::Recompute::kFull ? 1 : 0;  // forward passes in the backward pass
  const std::int64_t rows = s.micro_batch * s.sequence / s.cp;
  const std::int64_t hidden = rows * shape.hidden * 2;
  if (s.tp > 1) {
    // Halves with a column- and row-parallel pair: attention always, a dense MLP or shared experts.
    const bool shared = shape.experts && shape.experts->shared_ffn > 0;
    const std::int64_t halves = 2 * layers.all - (shared ? 0 : layers.with_experts);
    std::int64_t expected = 0;
    if (s.sequence_parallel) {
      expected = halves * (5 + 2 * again) * hidden;
      if (has_embedding) expected += 2 * hidden;                // scatter; the gradient gathered
      if (has_head) expected += 3 * hidden + 3 * rows * 4;      // gathered twice, scattered; the loss's three sums
    } else {
      expected = halves * (2 + again) * hidden;
      if (has_embedding) expected += hidden;
      if (has_head) expected += hidden + 3 * rows * 4;
    }
    CHECK(sum_over(plan, program, "tp") == m * expected);
  }
  if (s.ep > 1) {
    const std::int64_t tokens = s.sequence_parallel ? rows / s.tp : rows;
    const std::int64_t once = tokens * shape.experts->top_k * shape.hidden * 2;
    CHECK(sum_over(plan, program, "ep") == m * layers.with_experts * (4 + 2 * again) * once);
  }
  if (shape.experts && expert_tensor(s) > 1) {
    const std::int64_t tokens = s.sequence_parallel ? rows / s.tp : rows;
    const std::int64_t once = expert_tensor(s) * tokens * shape.experts->top_k * shape.hidden * 2;
    CHECK(sum_over(plan, program, "etp") == m * layers.with_experts * (4 + 2 * again) * once);
  }
  if (s.cp > 1) {
    const std::int64_t keys_values = rows * 2 * shape.kv_heads / s.tp * shape.head_dim * 2;
    const std::int64_t queries = rows * shape.heads / s.tp * shape.head_dim * 2;
    std::int64_t forward = 0;
    std::int64_t backward = 0;
    switch (s.context_style) {
      case ContextStyle::kRing:
      case ContextStyle::kPlainRing:
        forward = (s.cp - 1) * keys_values;
        backward = 2 * forward;
        break;
      case ContextStyle::kAllGather:
        forward = s.cp * keys_values;
        backward = 2 * forward;
        break;
      case ContextStyle::kUlysses: forward = backward = queries + keys_values + queries; break;
    }
    CHECK(sum_over(plan, program, "cp") == m * layers.all * (forward * (1 + again) + backward));
  }
}

}  // namespace

TEST_CASE("planner: random mixes send what the closed forms say") {
  int legal = 0;
  int with_experts = 0;
  int with_context = 0;
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    CAPTURE(seed);
    Rng rng{seed, "planner volumes"};
    const workload::ModelShape shape = random_mixture(rng);
    const Strategy s = random_mix(rng, shape);
    if (!check(shape, s).empty()) continue;
    if (s.zero >= 2 && s.pp > 1) continue;  // the root unit's gathers depend on the schedule
    ++legal;
    with_experts += s.ep > 1 ? 1 : 0;
    with_context += s.cp > 1 ? 1 : 0;
    const plan::Plan plan = make_plan(shape, s);
    const auto faults = plan::check(plan);
    if (!faults.empty()) FAIL_CHECK(to_text(faults.front()));
    const ModelBlocks blocks = make_blocks(shape, s);
    std::int64_t layer = 0;
    for (const StageModel& model : split_stages(blocks, s)) {
      const plan::Program& program = plan.programs.at(plan.program_of_stage.at(static_cast<std::size_t>(model.stage)).index());
      Layers layers;
      for (const StageBlock& block : model.blocks) {
        if (block.role != BlockRole::kLayer) continue;
        ++layers.all;
        layers.with_experts += has_experts(shape, layer++) ? 1 : 0;
      }
      check_data(plan, program, model, s, Kind::kDense);
      if (shape.experts) check_data(plan, program, model, s, Kind::kExpert);
      check_layers(plan, program, shape, s, layers, model.stage == 0, model.stage + 1 == s.pp);
    }
  }
  CHECK(legal > 150);
  CHECK(with_experts > 30);
  CHECK(with_context > 50);
}

TEST_SUITE_END();
