// Random legal strategies: the plan is sound, messages match, nothing but the states stays allocated.
#include <doctest/doctest.h>

#include <map>

#include "models/parallel/planner.hpp"
#include "models/parallel/state.hpp"
#include "sim/base/random.hpp"
#include "sim/plan/check.hpp"
#include "tests/support/plan_sums.hpp"
#include "tests/support/stream_order.hpp"
#include "tests/support/workload_shapes.hpp"

using namespace stepcast;
using namespace stepcast::parallel;
using namespace stepcast::test;
using plan::Category;

TEST_SUITE_BEGIN("property");

namespace {

template <class T>
T pick(Rng& rng, std::initializer_list<T> choices) {
  return choices.begin()[rng.below(choices.size())];
}
bool coin(Rng& rng) { return rng.below(2) == 0; }

workload::ModelShape random_shape(Rng& rng) {
  workload::ModelShape shape = gpt_shape(1 + static_cast<std::int64_t>(rng.below(9)), 256, 8, 4096);
  shape.kv_heads = pick<std::int64_t>(rng, {8, 4, 1});
  shape.gated_mlp = coin(rng);
  shape.tied_embeddings = coin(rng);
  shape.qk_norm = coin(rng);
  shape.attention_bias = coin(rng);
  shape.mlp_bias = coin(rng);
  if (coin(rng)) {
    shape.sliding_window = 64;
    for (std::int64_t layer = 0; layer < shape.layers; ++layer) shape.layer_is_sliding.push_back(coin(rng));
  }
  if (coin(rng)) {
    shape.experts = workload::ExpertShape{.count = 8, .top_k = 2, .ffn = 64, .shared_ffn = coin(rng) ? 64 : 0, .shared_gate = coin(rng), .bias = coin(rng), .router_bias = coin(rng)};
    for (std::int64_t layer = 0; layer < shape.layers; ++layer) shape.layer_has_experts.push_back(layer > 0 || coin(rng));
  }
  if (rng.below(4) == 0) {
    shape.latent = workload::LatentAttention{.q_rank = 64, .kv_rank = 32, .nope_dim = 32, .rope_dim = 16, .value_dim = 32};
    shape.head_dim = 48;
    shape.kv_heads = shape.heads;
  }
  if (rng.below(4) == 0) shape.predicted_ahead = 1;
  return shape;
}

Strategy random_strategy(Rng& rng) {
  Strategy s;
  s.cp = pick(rng, {1, 1, 2, 4});
  s.context_style = pick(rng, {workload::ContextStyle::kRing, workload::ContextStyle::kAllGather, workload::ContextStyle::kUlysses});
  s.ep = pick(rng, {1, 1, 2, 4, 8});
  if (s.ep > 1 && coin(rng)) s.etp = pick(rng, {1, 2});
  s.overlap_shared_experts = coin(rng);
  if (coin(rng)) s.routing.capacity_factor = 1.25;
  if (coin(rng)) s.routing.skew = 0.5;
  s.tp = pick(rng, {1, 2, 4});
  s.pp = pick(rng, {1, 2, 3, 4, 5});
  s.dp = pick(rng, {1, 2, 4, 6});
  s.micro_batch = pick<std::int64_t>(rng, {1, 2});
  s.global_batch = s.dp * s.micro_batch * static_cast<std::int64_t>(1 + rng.below(9));
  s.sequence = 256;
  s.schedule = coin(rng) ? Schedule::kGpipe : Schedule::kOneFOneB;
  s.sequence_parallel = coin(rng);
  s.zero = static_cast<int>(rng.below(4));
  if (s.zero > 0 && s.dp > 2 && coin(rng)) s.shard_group = 2;
  s.overlap_grad_reduce = coin(rng);
  s.overlap_param_gather = coin(rng);
  s.reshard_after_forward = coin(rng);
  s.prefetch = static_cast<std::int32_t>(rng.below(4));
  s.bucket = Bytes{pick<std::int64_t>(rng, {1, 100'000, 1'000'000, 1'000'000'000})};
  s.dtype = pick(rng, {plan::Dtype::kBf16, plan::Dtype::kFp16, plan::Dtype::kFp32});
  s.gradient_dtype = pick(rng, {plan::Dtype::kBf16, plan::Dtype::kFp32});
  s.fp32_master = coin(rng);
  s.optimizer = pick(rng, {Optimizer::kAdam, Optimizer::kAdamW, Optimizer::kSgd});
  s.clip_gradients = coin(rng);
  s.recompute = pick(rng, {workload::Recompute::kNone, workload::Recompute::kSelective, workload::Recompute::kFull});
  s.attention = coin(rng) ? workload::AttentionKernel::kFlash : workload::AttentionKernel::kUnfused;
  s.fused_kernels = coin(rng);
  s.dropout = pick(rng, {0.0, 0.1});
  if (coin(rng))
    s.order = {plan::Axis::kTensor, plan::Axis::kPipeline, plan::Axis::kContext, plan::Axis::kExpert, plan::Axis::kData};
  return s;
}

void check_messages(const plan::Plan& plan, const Strategy& s) {
  std::int64_t sends = 0;
  std::int64_t receives = 0;
  for (const plan::Program& program : plan.programs) {
    for (const plan::Instruction& i : program.instructions) {
      sends += std::holds_alternative<plan::Send>(i.body) ? 1 : 0;
      receives += std::holds_alternative<plan::Recv>(i.body) ? 1 : 0;
    }
  }
  CHECK(sends == 2 * (s.pp - 1) * micro_batches(s));
  CHECK(sends == receives);
}

// Each category's bytes at the end are those of the states; each micro-batch passes each stage once.
void check_stage(const plan::Program& program, const Strategy& s) {
  const Holdings held = holdings(program);
  CHECK(held.end_of(Category::kActivations) == 0);
  // At most what stands for gradients of weights.
  CHECK(held.end_of(Category::kWorkspace) <= held.end_of(Category::kParameters));
  if (!s.fused_accumulation || s.zero > 1) CHECK(held.end_of(Category::kWorkspace) == 0);
  CHECK(held.end_of(Category::kCommunication) == 0);
  CHECK(held.end_of(Category::kParameters) > 0);
  for (const Category c : {Category::kParameters, Category::kGradients, Category::kOptimizer})
    CHECK(held.end_of(c) == held.peak_of(c));
  if (s.zero > 1) return;
  const std::int64_t parameters = held.end_of(Category::kParameters) / plan::element_bytes(s.dtype);
  CHECK(held.end_of(Category::kGradients) == parameters * plan::element_bytes(s.gradient_dtype));
  const bool experts_reduced = expert_replicas(s) > 1;
  if (dense_replicas(s) == 1 && !experts_reduced) return;
  const auto kind = s.zero == 0 ? plan::CollectiveKind::kAllReduce : plan::CollectiveKind::kReduceScatter;
  const auto reduced = sum_collectives(program, [&](const plan::Instruction& i, const plan::Collective& c) {
    return i.stage == plan::Stage::kGradientSync && c.purpose == plan::Purpose::kData && c.kind == kind;
  });
  // A bucket is padded by less than one element a shard. Experts without replicas are not reduced.
  const std::int64_t shards = std::max(shard_size(s), shard_size(s, Kind::kExpert));
  const std::int64_t padding = s.zero == 0 ? 0 : reduced.count * (shards - 1) * plan::element_bytes(s.gradient_dtype);
  if (dense_replicas(s) > 1 && (experts_reduced || s.ep == 1)) CHECK(reduced.bytes >= held.end_of(Category::kGradients));
  CHECK(reduced.bytes <= held.end_of(Category::kGradients) + padding);
}

// Memory is reused only by work that runs after its last use; the update sees every reduced gradient; a
// pass of a micro-batch starts after its tensor arrived, and what it made leaves after it.
void check_order(const plan::Program& program) {
  const StreamOrder order{program};
  std::map<std::uint32_t, std::size_t> freed;                 // by buffer
  std::map<std::string, std::size_t> arrived;                 // by pass: its receive
  std::map<std::string, std::size_t> last_of;                 // by pass: its last kernel
  std::vector<std::size_t> reductions;
  for (std::size_t n = 0; n < program.instructions.size(); ++n) {
    const plan::Instruction& i = program.instructions[n];
    const bool is_forward = i.stage == plan::Stage::kForward;
    const std::string pass = (is_forward ? "F" : "B") + std::to_string(i.micro_batch.value_or(0));
    if (const auto* f = std::get_if<plan::Free>(&i.body)) freed[f->buffer.value()] = n;
    if (const auto* a = std::get_if<plan::Alloc>(&i.body)) {
      const auto before = freed.find(a->buffer.value());
      if (before != freed.end()) CHECK(order.runs_before(before->second, n));
    }
    if (std::holds_alternative<plan::Recv>(i.body)) arrived[pass] = n;
    if (std::holds_alternative<plan::Compute>(i.body) && i.micro_batch) {
      if (const auto recv = arrived.find(pass); recv != arrived.end()) CHECK(order.runs_before(recv->second, n));
      last_of[pass] = n;
    }
    if (std::holds_alternative<plan::Send>(i.body)) CHECK(order.runs_before(last_of.at(pass), n));
    if (i.stage == plan::Stage::kGradientSync && std::holds_alternative<plan::Collective>(i.body)) reductions.push_back(n);
    if (label_of(program, i) == "optimizer.update")
      for (const std::size_t reduction : reductions) CHECK(order.runs_before(reduction, n));
  }
}

}  // namespace

TEST_CASE("planner: plans of random legal strategies are sound") {
  int legal = 0;
  for (std::uint64_t seed = 0; seed < 1500; ++seed) {
    CAPTURE(seed);
    Rng rng{seed, "planner strategies"};
    const workload::ModelShape shape = random_shape(rng);
    const Strategy s = random_strategy(rng);
    if (!check(shape, s).empty()) continue;
    ++legal;
    const plan::Plan plan = make_plan(shape, s);
    const auto faults = plan::check(plan);
    if (!faults.empty()) FAIL_CHECK(to_text(faults.front()));
    check_messages(plan, s);
    for (const plan::Program& program : plan.programs) {
      check_stage(program, s);
      check_order(program);
    }
    CHECK(make_plan(shape, s) == plan);
  }
  CHECK(legal > 200);
}

TEST_SUITE_END();
