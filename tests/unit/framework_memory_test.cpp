// What frameworks hold besides states and activations: read off the plan's buffers.
#include <doctest/doctest.h>

#include "models/collective/communicator_memory.hpp"
#include "models/parallel/planner.hpp"
#include "models/parallel/stage_model.hpp"
#include "models/parallel/state.hpp"
#include "sim/plan/memory_timeline.hpp"
#include "tests/support/plan_sums.hpp"
#include "tests/support/workload_shapes.hpp"

using namespace stepcast;
using namespace stepcast::parallel;
using namespace stepcast::test;
using plan::Category;

TEST_SUITE_BEGIN("unit");

namespace {

Strategy pipeline() {
  Strategy s;
  s.sequence = 1024;
  s.pp = 2;
  s.dp = 2;
  s.global_batch = 16;
  s.overlap_grad_reduce = false;
  s.fused_accumulation = false;
  s.dtype = plan::Dtype::kFp16;
  s.gradient_dtype = plan::Dtype::kFp16;
  return s;
}

std::int64_t bytes_of(const plan::Program& program, std::string_view label) {
  for (const plan::Buffer& buffer : program.buffers)
    if (program.labels[buffer.label.index()] == label) return buffer.size.count();
  return 0;
}

std::size_t buffers_of(const plan::Program& program, std::string_view label) {
  std::size_t count = 0;
  for (const plan::Buffer& buffer : program.buffers) count += program.labels[buffer.label.index()] == label ? 1 : 0;
  return count;
}

PersistentState state_of(const workload::ModelShape& shape, const Strategy& s, std::size_t stage) {
  const ModelBlocks blocks = make_blocks(shape, s);
  return persistent_state(split_stages(blocks, s)[stage], s);
}

}  // namespace

// Hidden 1024, GPT: qkv 3072 x 1024, out 1024 x 1024, up 4096 x 1024, down 1024 x 4096; once, however many layers.
TEST_CASE("framework memory: one stand-in for each shape of a layer's weights") {
  Strategy s = pipeline();
  CHECK(state_of(gpt_shape(8, 1024, 16), s, 0).placeholders == Bytes{0});
  s.fused_accumulation = true;
  const std::int64_t elements = (3072 + 1024 + 4096 + 4096) * 1024LL;
  CHECK(state_of(gpt_shape(8, 1024, 16), s, 0).placeholders == Bytes{2 * elements});
  CHECK(state_of(gpt_shape(16, 1024, 16), s, 0).placeholders == Bytes{2 * elements});
  s.zero = 2;  // gradients are tensors of their own there
  CHECK(state_of(gpt_shape(8, 1024, 16), s, 0).placeholders == Bytes{0});
}

// 1F1B over two stages: two micro-batches in flight on the first, one on the last. Micro-batch 1, 1024 x 1024 of 2 B.
TEST_CASE("framework memory: stages that keep their outputs") {
  Strategy s = pipeline();
  const workload::ModelShape shape = gpt_shape(4, 1024, 16);
  const plan::Plan without = make_plan(shape, s);
  CHECK(buffers_of(without.programs[0], "stage.output") == 0);
  s.keeps_stage_outputs = true;
  const plan::Plan with = make_plan(shape, s);
  CHECK(buffers_of(with.programs[0], "stage.output") == 2);
  CHECK(buffers_of(with.programs[1], "stage.output") == 1);
  CHECK(bytes_of(with.programs[0], "stage.output") == 2 * 1024 * 1024);
  // Both are held at the first stage's peak.
  CHECK((plan::memory_timeline(with.programs[0]).peak - plan::memory_timeline(without.programs[0]).peak).count() == 2 * 2 * 1024 * 1024);
  CHECK(plan::memory_timeline(with.programs[0]).at_end == plan::memory_timeline(without.programs[0]).at_end);
}

// Eight micro-batches of 1024 x 1024 x 2 B: the first stage receives their gradients, the last one their activations, one of
// which is the saved input of the micro-batch in flight.
TEST_CASE("framework memory: buffers for all that a stage will receive") {
  Strategy s = pipeline();
  const workload::ModelShape shape = gpt_shape(4, 1024, 16);
  CHECK(bytes_of(make_plan(shape, s).programs[0], "pipeline.receive") == 0);
  s.receives_ahead = true;
  const plan::Plan plan = make_plan(shape, s);
  CHECK(bytes_of(plan.programs[0], "pipeline.receive") == 8 * 2 * 1024 * 1024);
  CHECK(bytes_of(plan.programs[1], "pipeline.receive") == 7 * 2 * 1024 * 1024);
}

// n gradients of this worker: 2 B flat and 4 B cast with ZeRO, 4 B of casts and 4 B flat without.
TEST_CASE("framework memory: 16-bit gradients cast for the update") {
  Strategy s = pipeline();
  s.casts_gradients = true;
  const workload::ModelShape shape = gpt_shape(4, 1024, 16);
  for (const int zero : {0, 1}) {
    CAPTURE(zero);
    s.zero = zero;
    const std::int64_t n = state_of(shape, s, 0).updated_elements;
    const plan::Program program = make_plan(shape, s).programs[0];
    CHECK(bytes_of(program, "optimizer.gradients") == n * (zero == 0 ? 4 : 2));
    CHECK(bytes_of(program, "optimizer.gradients.fp32") == n * 4);
  }
}

TEST_CASE("framework memory: 16-bit gradients kept beside fp32 sums") {
  Strategy s = pipeline();
  s.gradient_dtype = plan::Dtype::kFp32;
  const workload::ModelShape shape = gpt_shape(4, 1024, 16);
  const Bytes sums = state_of(shape, s, 0).gradients;
  s.keeps_low_gradients = true;
  CHECK(state_of(shape, s, 0).gradients.count() == sums.count() * 3 / 2);
}

TEST_CASE("framework memory: gradients where parameters were") {
  Strategy s = pipeline();
  const workload::ModelShape shape = gpt_shape(4, 1024, 16);
  CHECK(bytes_of(make_plan(shape, s).programs[0], "gradients") == state_of(shape, s, 0).gradients.count());
  s.gradients_in_parameters = true;
  CHECK(bytes_of(make_plan(shape, s).programs[0], "gradients") == 0);
}

TEST_CASE("framework memory: DistributedDataParallel's buckets are gradients a second time") {
  Strategy s = pipeline();
  const workload::ModelShape shape = gpt_shape(4, 1024, 16);
  CHECK(state_of(shape, s, 0).buckets == Bytes{0});
  s.keeps_buckets = true;
  CHECK(state_of(shape, s, 0).buckets == state_of(shape, s, 0).gradients);
  CHECK(bytes_of(make_plan(shape, s).programs[0], "gradient.buckets") == state_of(shape, s, 0).gradients.count());
}

// A bucket of 1 MB, or of all gradients where they are fewer.
TEST_CASE("framework memory: gradients copied into buckets") {
  Strategy s = pipeline();
  s.copies_into_buckets = true;
  s.bucket = Bytes{1'000'000};
  const workload::ModelShape shape = gpt_shape(4, 1024, 16);
  CHECK(bytes_of(make_plan(shape, s).programs[0], "gradient.bucket") == 1'000'000);
  s.bucket = Bytes{100'000'000'000};
  CHECK(bytes_of(make_plan(shape, s).programs[0], "gradient.bucket") == 2 * state_of(shape, s, 0).gradient_elements);
}

// Two stages of two layers, sharded over two, eight micro-batches: each gradient is scattered once, and without resharding each
// unit is gathered once a step. Layers' gradients live whole until then.
TEST_CASE("framework memory: shards in a pipeline are gathered and scattered once a step") {
  Strategy s = pipeline();
  s.zero = 3;
  s.overlap_grad_reduce = true;
  s.reshard_after_forward = false;
  workload::ModelShape shape = gpt_shape(4, 1024, 16);
  shape.tied_embeddings = false;
  const plan::Plan plan = make_plan(shape, s);
  for (std::size_t stage = 0; stage < 2; ++stage) {
    CAPTURE(stage);
    const plan::Program& program = plan.programs[stage];
    CHECK(sum_collectives(program, plan::Purpose::kData, plan::CollectiveKind::kReduceScatter).count == 3);
    CHECK(sum_collectives(program, plan::Purpose::kData, plan::CollectiveKind::kAllGather).count == 3);
    std::int64_t whole = 0;
    for (const plan::Buffer& buffer : program.buffers)
      if (program.labels[buffer.label.index()] == "gradient.unit") whole += buffer.size.count();
    const ModelBlocks blocks = make_blocks(shape, s);
    CHECK(whole >= 2 * split_stages(blocks, s)[stage].parameters);
  }
}

// NVIDIA/nccl issue 964: 544 MiB for two A100 on NVLink (24 channels), 688 MiB for four.
TEST_CASE("framework memory: a communicator's connections") {
  const double mebibytes = collective::communicator_memory(24).si() / 1048576.0;
  CHECK(mebibytes == doctest::Approx(544.0).epsilon(0.02));
  CHECK(mebibytes == doctest::Approx(688.0).epsilon(0.25));
}

TEST_SUITE_END();
