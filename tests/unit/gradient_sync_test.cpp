// When gradients are summed over replicas, in which format, and what is kept in which.
#include <doctest/doctest.h>

#include "models/parallel/optimizer.hpp"
#include "models/parallel/planner.hpp"
#include "sim/plan/check.hpp"
#include "tests/support/plan_sums.hpp"
#include "tests/support/workload_shapes.hpp"

using namespace stepcast;
using namespace stepcast::parallel;
using namespace stepcast::test;
using plan::Category;
using plan::CollectiveKind;
using plan::Dtype;

TEST_SUITE_BEGIN("unit");

namespace {

// 12 layers of width 512, whose tensors 2 and 4 divide.
const workload::ModelShape kShape = gpt_shape(12, 512, 8);
const std::int64_t kParameters = count_parameters(kShape).total;

// Four micro-batches on each of two replicas.
Strategy base(int zero) {
  Strategy s;
  s.sequence = 1024;
  s.dp = 2;
  s.global_batch = 8;
  s.zero = zero;
  s.bucket = Bytes{4 << 20};
  return s;
}

std::int64_t sent(const Strategy& s, CollectiveKind kind) {
  const plan::Plan plan = make_plan(kShape, s);
  const auto faults = plan::check(plan);
  if (!faults.empty()) FAIL_CHECK(to_text(faults.front()));
  return sum_collectives(plan.programs[0], [&](const plan::Instruction& i, const plan::Collective& c) {
           return c.purpose == plan::Purpose::kData && c.kind == kind && label_of(plan.programs[0], i) != "optimizer.norm";
         }).bytes;
}

std::int64_t held(const Strategy& s, Category category) { return holdings(make_plan(kShape, s).programs[0]).end_of(category); }

// Of full gradients that live until they are scattered.
std::int64_t whole_units(const Strategy& s) {
  const plan::Program program = make_plan(kShape, s).programs[0];
  std::int64_t sum = 0;
  for (const plan::Buffer& buffer : program.buffers)
    if (program.labels[buffer.label.index()] == "gradient.unit") sum += buffer.size.count();
  return sum;
}

}  // namespace

// DDP without no_sync: m P rather than P. FSDP with it: P rather than m P, and whole gradients.
TEST_CASE("gradients: summed after every micro-batch, or once") {
  for (const bool overlap : {false, true}) {
    Strategy s = base(0);
    s.overlap_grad_reduce = overlap;
    CHECK(sent(s, CollectiveKind::kAllReduce) == 4 * kParameters);
    s.sync_every = true;
    CHECK(sent(s, CollectiveKind::kAllReduce) == 4 * 4 * kParameters);
    s.zero = 1;
    CHECK(sent(s, CollectiveKind::kReduceScatter) == 4 * 4 * kParameters);
    for (const int zero : {2, 3}) {
      s = base(zero);
      s.overlap_grad_reduce = overlap;
      CHECK(sent(s, CollectiveKind::kReduceScatter) == 4 * 4 * kParameters);
      CHECK(held(s, Category::kGradients) == 4 * kParameters / 2);
      s.sync_every = false;
      CHECK(sent(s, CollectiveKind::kReduceScatter) == 4 * kParameters);
      if (zero == 2) CHECK(held(s, Category::kGradients) == 4 * kParameters);
      if (zero == 3) CHECK(whole_units(s) == 4 * kParameters);
    }
  }
}

TEST_CASE("gradients: travel in another format than they are kept in") {
  Strategy s = base(0);
  s.gradient_dtype = Dtype::kBf16;
  CHECK(sent(s, CollectiveKind::kAllReduce) == 2 * kParameters);
  s.reduce_dtype = Dtype::kFp32;
  CHECK(sent(s, CollectiveKind::kAllReduce) == 4 * kParameters);
  CHECK(held(s, Category::kGradients) == 2 * kParameters);
  // Each is copied into fp32 and back: 2 + 4 bytes each way.
  const plan::Program program = make_plan(kShape, s).programs[0];
  std::int64_t moved = 0;
  for (const plan::Instruction& i : program.instructions)
    if (const auto* c = std::get_if<plan::Compute>(&i.body); c != nullptr && label_of(program, i).starts_with("gradient.cast"))
      moved += program.kernels.at(c->kernel.index()).read.count() + program.kernels.at(c->kernel.index()).written.count();
  CHECK(moved == 2 * 6 * kParameters);
  s.zero = 3;
  CHECK(sent(s, CollectiveKind::kReduceScatter) == 4 * 4 * kParameters);
}

TEST_CASE("gradients: narrow moments") {
  Strategy s = base(0);
  CHECK(held(s, Category::kOptimizer) == 12 * kParameters);
  s.state_dtype = Dtype::kBf16;
  CHECK(held(s, Category::kOptimizer) == 8 * kParameters);
  s.fp32_master = false;
  CHECK(held(s, Category::kOptimizer) == 4 * kParameters);
  s.optimizer = Optimizer::kSgd;
  CHECK(held(s, Category::kOptimizer) == 2 * kParameters);
  s.optimizer = Optimizer::kAdam8bit;
  CHECK(check(kShape, s).front().path == "memory.optimizer_states");
}

// Weights of fp8 products in one byte, the rest (embedding, norms, biases) in two.
TEST_CASE("gradients: parameters gathered in fp8") {
  const std::int64_t weights = 12 * 12 * 512 * 512;
  Strategy s = base(1);
  s.gemm_dtype = Dtype::kFp8;
  CHECK(sent(s, CollectiveKind::kAllGather) == 2 * kParameters);
  s.fp8_gather = true;
  CHECK(sent(s, CollectiveKind::kAllGather) == 2 * kParameters - weights);
  s.zero = 3;
  const std::int64_t layers = weights + 12 * 13 * 512;
  CHECK(sent(s, CollectiveKind::kAllGather) == 4 * (2 * (2 * layers - weights) + 2 * (kParameters - layers)));
  s.zero = 0;
  CHECK(check(kShape, s).front().path == "parallel.fp8_param_gather");
}

// torchtitan: FSDP within pipeline stages, also interleaved; whole gradients until the last micro-batch.
TEST_CASE("gradients: sharded within pipeline stages") {
  workload::ModelShape shape = llama3_8b();
  shape.layers = 8;
  shape.hidden = 512;
  shape.heads = 8;
  shape.kv_heads = 8;
  shape.head_dim = 64;
  shape.ffn = 1024;
  shape.vocab = 4096;
  for (const int zero : {2, 3})
    for (const int chunks : {1, 2})
      for (const bool every : {false, true})
        for (const bool reshard : {false, true}) {
          CAPTURE(zero);
          CAPTURE(chunks);
          CAPTURE(every);
          CAPTURE(reshard);
          Strategy s = base(zero);
          s.pp = 2;
          s.virtual_stages = chunks;
          s.sync_every = every;
          s.reshard_after_forward = reshard;
          REQUIRE(check(shape, s).empty());
          const plan::Plan plan = make_plan(shape, s);
          const auto faults = plan::check(plan);
          if (!faults.empty()) FAIL_CHECK(to_text(faults.front()));
          std::int64_t scattered = 0;
          for (const plan::Program& program : plan.programs)
            scattered += sum_collectives(program, plan::Purpose::kData, CollectiveKind::kReduceScatter).bytes;
          CHECK(scattered == (every ? 4 : 1) * 4 * count_parameters(shape).total);
        }
  Strategy s = base(3);
  s.pp = 2;
  s.schedule = Schedule::kZbH1;
  CHECK(check(shape, s).front().path == "parallel.zero");
}

TEST_SUITE_END();
