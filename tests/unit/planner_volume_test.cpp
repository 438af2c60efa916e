#include <doctest/doctest.h>

#include <ctime>

#include "models/parallel/planner.hpp"
#include "tests/support/plan_sums.hpp"
#include "tests/support/workload_shapes.hpp"

using namespace stepcast;
using namespace stepcast::parallel;
using namespace stepcast::test;
using plan::CollectiveKind;
using plan::Purpose;

TEST_SUITE_BEGIN("unit");

namespace {

// 12 layers of width 512; V 51200 is a multiple of 128 * 4, so nothing is padded.
const workload::ModelShape kShape = gpt_shape(12, 512, 8);
const std::int64_t kParameters = count_parameters(kShape).total;
// A layer of GPT: 12 h^2 weights, 13 h biases and norms.
const std::int64_t kLayer = 12 * 512 * 512 + 13 * 512;

Strategy base() {
  Strategy s;
  s.sequence = 1024;
  s.global_batch = 16;
  s.bucket = Bytes{4 << 20};
  return s;
}

CollectiveSum data_sum(const Strategy& s, CollectiveKind kind) {
  return sum_collectives(make_plan(kShape, s).programs[0], Purpose::kData, kind);
}

bool is_norm(const plan::Program& program, const plan::Instruction& i) {
  return label_of(program, i) == "optimizer.norm";
}

}  // namespace

TEST_CASE("planner: data parallelism reduces the gradients once") {
  Strategy s = base();
  s.dp = 4;
  CHECK(data_sum(s, CollectiveKind::kAllReduce).bytes == 4 * kParameters);
  CHECK(data_sum(s, CollectiveKind::kAllReduce).count > 12);
  s.gradient_dtype = plan::Dtype::kBf16;
  CHECK(data_sum(s, CollectiveKind::kAllReduce).bytes == 2 * kParameters);
  s.overlap_grad_reduce = false;
  CHECK(data_sum(s, CollectiveKind::kAllReduce) == CollectiveSum{1, 2 * kParameters});
  s.dp = 1;
  CHECK(data_sum(s, CollectiveKind::kAllReduce).count == 0);
}

// dp 2 divides every piece: nothing is padded. The norm adds an all-reduce of 4 bytes.
TEST_CASE("planner: ZeRO-1 scatters the gradients and gathers the parameters") {
  for (const bool overlap : {false, true}) {
    Strategy s = base();
    s.dp = 2;
    s.zero = 1;
    s.overlap_param_gather = overlap;
    CHECK(data_sum(s, CollectiveKind::kReduceScatter).bytes == 4 * kParameters);
    CHECK(data_sum(s, CollectiveKind::kAllGather).bytes == 2 * kParameters);
    CHECK(data_sum(s, CollectiveKind::kAllReduce) == CollectiveSum{1, 4});
  }
}

TEST_CASE("planner: ZeRO-2 scatters in every micro-batch") {
  Strategy s = base();
  s.dp = 2;
  s.zero = 2;  // 16 / 2 = 8 micro-batches
  CHECK(data_sum(s, CollectiveKind::kReduceScatter).bytes == 8 * 4 * kParameters);
  CHECK(data_sum(s, CollectiveKind::kAllGather).bytes == 2 * kParameters);
}

// Per micro-batch a layer is gathered twice and scattered once: 3 P with equal dtypes; the root
// (embedding, final norm) stays gathered: 2 P_root. Without resharding everything is gathered once.
TEST_CASE("planner: ZeRO-3 moves three times the parameters") {
  Strategy s = base();
  s.dp = 2;
  s.zero = 3;
  s.gradient_dtype = plan::Dtype::kBf16;
  const std::int64_t layers = 12 * kLayer;
  const std::int64_t root = kParameters - layers;
  CHECK(data_sum(s, CollectiveKind::kAllGather).bytes == 8 * 2 * (2 * layers + root));
  CHECK(data_sum(s, CollectiveKind::kReduceScatter).bytes == 8 * 2 * kParameters);
  CHECK(data_sum(s, CollectiveKind::kReduceScatter).count == 8 * 13);
  s.reshard_after_forward = false;
  CHECK(data_sum(s, CollectiveKind::kAllGather).bytes == 8 * 2 * kParameters);
}

// Shards within blocks of 2, two replicas of each: the scatter is followed by half its bytes.
TEST_CASE("planner: hybrid sharding reduces shards over the replicas") {
  for (const int zero : {1, 3}) {
    Strategy s = base();
    s.dp = 4;
    s.global_batch = 4;
    s.zero = zero;
    s.shard_group = 2;
    const plan::Plan plan = make_plan(kShape, s);
    const plan::Program& program = plan.programs[0];
    const auto over = [&](const char* name) {
      return sum_collectives(program, [&](const plan::Instruction& i, const plan::Collective& c) {
        return plan.groups[c.group.index()].name == name && !is_norm(program, i);
      });
    };
    CHECK(over("dp.replica").bytes == 4 * kParameters / 2);
    CHECK(sum_collectives(program, Purpose::kData, CollectiveKind::kReduceScatter).bytes == 4 * kParameters);
    for (std::size_t g = 0; g < plan.groups.size(); ++g) {
      const auto members = plan.members(plan::GroupId{g}, RankId{2U});
      REQUIRE(members.size() == 2);
      CHECK(members[0].value() == (plan.groups[g].name == "dp.replica" ? 0 : 2));
    }
  }
}

// 2 all-reduces of 2 b s h bytes in each pass of a layer, and two for embedding and logits gradient; the loss
// reduces three fp32 numbers a token.
TEST_CASE("planner: tensor parallelism reduces four times a layer") {
  Strategy s = base();
  s.tp = 4;
  s.global_batch = 2;
  const plan::Program program = make_plan(kShape, s).programs[0];
  const std::int64_t message = 2 * 1024 * 512;
  const auto in_layers = sum_collectives(program, [](const plan::Instruction& i, const plan::Collective& c) {
    return i.layer.has_value() && c.purpose == Purpose::kTensor;
  });
  CHECK(in_layers == CollectiveSum{2 * 12 * 4, 2 * 12 * 4 * message});
  const auto all = sum_collectives(program, Purpose::kTensor, CollectiveKind::kAllReduce);
  // Norm: 4 bytes a step.
  CHECK(all.bytes == in_layers.bytes + 2 * (2 * message + 3 * 4 * 1024) + 4);
}

// Sequence parallelism: an all-reduce becomes an all-gather and a reduce-scatter of the same bytes; the
// backward pass gathers each column-parallel input once more.
TEST_CASE("planner: sequence parallelism") {
  Strategy s = base();
  s.tp = 4;
  s.sequence_parallel = true;
  s.global_batch = 1;
  const plan::Program program = make_plan(kShape, s).programs[0];
  const std::int64_t message = 2 * 1024 * 512;
  const auto in_layers = [&](CollectiveKind kind) {
    return sum_collectives(program, [&](const plan::Instruction& i, const plan::Collective& c) {
      return i.layer.has_value() && c.purpose == Purpose::kTensor && c.kind == kind;
    });
  };
  CHECK(in_layers(CollectiveKind::kAllReduce).count == 0);
  CHECK(in_layers(CollectiveKind::kReduceScatter) == CollectiveSum{12 * 4, 12 * 4 * message});
  CHECK(in_layers(CollectiveKind::kAllGather) == CollectiveSum{12 * 6, 12 * 6 * message});
  // Partial gradients: 4 h of norms and 2 h of row-parallel biases a layer, 2 h of the final norm, in fp32.
  const auto partial = sum_collectives(program, [&](const plan::Instruction& i, const plan::Collective&) {
    return label_of(program, i) == "gradient.partial";
  });
  CHECK(partial == CollectiveSum{1, 4 * (12 * 6 * 512 + 2 * 512)});
}

TEST_CASE("planner: what a stage sends is what its neighbour receives") {
  Strategy s = base();
  s.pp = 4;
  s.global_batch = 6;
  const plan::Plan plan = make_plan(kShape, s);
  std::vector<std::int64_t> balance(4 * 4, 0);
  std::int64_t messages = 0;
  for (std::size_t stage = 0; stage < 4; ++stage) {
    for (const plan::Instruction& i : plan.programs[stage].instructions) {
      if (const auto* send = std::get_if<plan::Send>(&i.body)) {
        balance[stage * 4 + static_cast<std::size_t>(send->peer_stage)] += send->bytes.count();
        ++messages;
      }
      if (const auto* recv = std::get_if<plan::Recv>(&i.body))
        balance[static_cast<std::size_t>(recv->peer_stage) * 4 + stage] -= recv->bytes.count();
    }
  }
  for (const std::int64_t bytes : balance) CHECK(bytes == 0);
  CHECK(messages == 6 * 3 * 2);
}

TEST_CASE("planner: the tied embedding's gradient is summed over the first and the last stage") {
  Strategy s = base();
  s.pp = 4;
  const plan::Plan plan = make_plan(kShape, s);
  for (std::size_t stage = 0; stage < 4; ++stage) {
    const auto sum = sum_collectives(plan.programs[stage], [&](const plan::Instruction& i, const plan::Collective&) {
      return label_of(plan.programs[stage], i) == "gradient.tied_embedding";
    });
    CHECK(sum.bytes == (stage == 0 || stage == 3 ? 4 * 51200 * 512 : 0));
  }
}

// Every operator of every block once a micro-batch, whatever stage it is on.
TEST_CASE("planner: the plan runs the blocks' FLOPs") {
  for (const auto recompute : {workload::Recompute::kNone, workload::Recompute::kFull}) {
    Strategy s = base();
    s.pp = 3;
    s.tp = 2;
    s.global_batch = 5;
    s.recompute = recompute;
    const plan::Plan plan = make_plan(kShape, s);
    workload::BlockOptions options;
    options.sequence = 1024;
    options.tensor_parallel = 2;
    options.recompute = recompute;
    double expected = 0;
    const auto add = [&](const workload::Block& block, double times) {
      for (const auto* steps : {&block.forward, &block.recompute, &block.backward})
        for (const workload::Step& step : *steps)
          if (const auto* op = std::get_if<workload::Operator>(&step)) expected += times * op->kernel.flops.si();
    };
    add(make_embedding(kShape, options), 5);
    add(make_layer(kShape, 0, options), 5 * 12);
    add(make_head(kShape, options, false), 5);
    double sum = 0;
    for (const plan::Program& program : plan.programs)
      sum += sum_flops(program, [](const plan::Instruction& i) { return i.stage != plan::Stage::kOptimizer; });
    CHECK(sum == doctest::Approx(expected).epsilon(1e-12));
  }
}

// Llama-3-405B on 16,384 GPUs: 126 layers, tp 8, pp 16, dp 128, 16 micro-batches (arXiv 2407.21783, table 4).
TEST_CASE("planner: Llama-3-405B is planned quickly and small") {
  workload::ModelShape shape = llama3_8b();
  shape.layers = 126;
  shape.hidden = 16384;
  shape.heads = 128;
  shape.ffn = 53248;
  Strategy s;
  s.tp = 8;
  s.pp = 16;
  s.dp = 128;
  s.sequence = 8192;
  s.global_batch = 2048;
  s.sequence_parallel = true;
  const std::clock_t start = std::clock();  // processor time: other programs do not count
  for (const int zero : {0, 1, 2, 3}) {
    s.zero = zero;
    const plan::Plan plan = make_plan(shape, s);
    CHECK(plan.programs.size() == 16);
    CHECK(plan.world_size() == 16384);
    for (const plan::Program& program : plan.programs) CHECK(program.instructions.size() < 200'000);
  }
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  MESSAGE("four plans in " << seconds << " s");
#ifdef NDEBUG
  CHECK(seconds < 4 * 0.3);
#endif
}

TEST_SUITE_END();
