// What may run beside what: by the order that streams and events guarantee, not by durations.
#include <doctest/doctest.h>

#include "models/parallel/bucket.hpp"
#include "models/parallel/planner.hpp"
#include "tests/support/plan_sums.hpp"
#include "tests/support/stream_order.hpp"
#include "tests/support/workload_shapes.hpp"

using namespace stepcast;
using namespace stepcast::parallel;
using namespace stepcast::test;

TEST_SUITE_BEGIN("unit");

namespace {

const workload::ModelShape kShape = gpt_shape(4, 512, 8);

// The work (not Alloc, Record, ...) of that label, layer and stage; the only micro-batch.
std::vector<std::size_t> find(const plan::Program& program, std::string_view label, std::optional<std::uint16_t> layer,
                              plan::Stage stage) {
  std::vector<std::size_t> found;
  for (std::size_t n = 0; n < program.instructions.size(); ++n) {
    const plan::Instruction& i = program.instructions[n];
    const bool works = std::holds_alternative<plan::Compute>(i.body) || std::holds_alternative<plan::Collective>(i.body);
    if (works && i.layer == layer && i.stage == stage && label_of(program, i) == label) found.push_back(n);
  }
  return found;
}

std::size_t only(const plan::Program& program, std::string_view label, std::optional<std::uint16_t> layer,
                 plan::Stage stage) {
  const auto found = find(program, label, layer, stage);
  REQUIRE(found.size() == 1);
  return found[0];
}

Strategy base(std::int32_t dp) {
  Strategy s;
  s.sequence = 512;
  s.dp = dp;
  s.global_batch = dp;
  s.bucket = Bytes{1};
  return s;
}

}  // namespace

TEST_CASE("planner: an input gradient is reduced beside the weight gradient, and done before the norm") {
  Strategy s = base(1);
  s.tp = 2;
  const plan::Program program = make_plan(kShape, s).programs[0];
  const StreamOrder order{program};
  for (std::uint16_t layer = 0; layer < 4; ++layer) {
    const std::size_t dgrad = only(program, "layer.attention.qkv.dgrad", layer, plan::Stage::kBackward);
    const std::size_t reduce = only(program, "layer.attention.qkv.dgrad.all_reduce", layer, plan::Stage::kBackward);
    const std::size_t wgrad = only(program, "layer.attention.qkv.wgrad", layer, plan::Stage::kBackward);
    const std::size_t norm = only(program, "layer.norm1.grad", layer, plan::Stage::kBackward);
    CHECK(order.runs_before(dgrad, reduce));
    CHECK_FALSE(order.runs_before(reduce, wgrad));
    CHECK_FALSE(order.runs_before(wgrad, reduce));
    CHECK(order.runs_before(reduce, norm));
  }
}

// Buckets of one tensor each: four weights and what is left of a layer, the table and the rest of the
// embedding's stage.
TEST_CASE("planner: buckets follow the weight gradients from the last layer to the first") {
  Strategy s = base(2);
  const ModelBlocks blocks = make_blocks(kShape, s);
  const auto stages = split_stages(blocks, s);
  const auto pieces = gradient_pieces(stages[0]);
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    sum += pieces[i].elements;
    if (i > 0) {
      const Moment& a = pieces[i - 1].ready;
      const Moment& b = pieces[i].ready;
      CHECK((a.block > b.block || (a.block == b.block && a.step <= b.step)));
    }
  }
  CHECK(sum == count_parameters(kShape).total);
  CHECK(make_buckets(pieces, 1).size() == pieces.size());
  CHECK(make_buckets(pieces, sum).size() == 1);
  // Layer 3 is block 4, after the embedding and three layers; mlp.down's gradient (4 h^2) is its first.
  CHECK(pieces[1].ready.block == 4);
  CHECK(pieces[1].elements == 4 * 512 * 512);
  // 4 h^2 + 4 h^2 reach 5 h^2, then h^2 + 3 h^2 + 13 h the rest of the layer, closed by the next layer.
  const auto buckets = make_buckets(std::span{pieces}.subspan(1), 5 * 512 * 512);
  CHECK(buckets[0].elements == 8 * 512 * 512);
  CHECK(buckets[1].elements == (4 + 4) * 512 * 512 + 13 * 512);
  CHECK(buckets[1].opened.block == 4);
  CHECK(buckets[1].ready.block == 3);
}

TEST_CASE("planner: a bucket is reduced when its last gradient is there, beside what follows") {
  Strategy s = base(2);
  const plan::Program program = make_plan(kShape, s).programs[0];
  const StreamOrder order{program};
  const auto reductions = find(program, "gradient.bucket", std::uint16_t{3}, plan::Stage::kGradientSync);
  REQUIRE(reductions.size() == 5);
  const std::size_t first = reductions[0];
  CHECK(order.runs_before(only(program, "layer.mlp.down.wgrad", std::uint16_t{3}, plan::Stage::kBackward), first));
  CHECK_FALSE(order.runs_before(only(program, "layer.attention.qkv.wgrad", std::uint16_t{3}, plan::Stage::kBackward), first));
  const std::size_t last_kernel = only(program, "embedding.grad", {}, plan::Stage::kBackward);
  CHECK_FALSE(order.runs_before(first, last_kernel));
  CHECK(order.runs_before(first, only(program, "optimizer.update", {}, plan::Stage::kOptimizer)));
  // Without overlap the reduction is in line with compute.
  s.overlap_grad_reduce = false;
  const plan::Program blocking = make_plan(kShape, s).programs[0];
  CHECK(blocking.streams.size() == 1);
}

// ZeRO-2 allocates gradients bucket by bucket. The head's product with a tied table is the first to write to the table's.
TEST_CASE("planner: a tied table's gradient is allocated before the head writes to it") {
  for (const std::int64_t bucket : {std::int64_t{1}, std::int64_t{1} << 40}) {
    for (const bool tied : {true, false}) {
      CAPTURE(bucket);
      CAPTURE(tied);
      workload::ModelShape shape = kShape;
      shape.tied_embeddings = tied;
      Strategy s = base(2);
      s.zero = 2;
      s.global_batch = 4;  // each micro-batch allocates its own
      s.bucket = Bytes{bucket};
      const plan::Program program = make_plan(shape, s).programs[0];
      const StreamOrder order{program};
      std::vector<std::size_t> tables;  // with room for the embedding's
      for (std::size_t n = 0; n < program.instructions.size(); ++n) {
        const auto* alloc = std::get_if<plan::Alloc>(&program.instructions[n].body);
        if (alloc == nullptr) continue;
        const plan::Buffer& buffer = program.buffers[alloc->buffer.index()];
        if (program.labels[buffer.label.index()] == "gradient.bucket" && buffer.size.count() >= 4 * shape.vocab * shape.hidden) tables.push_back(n);
      }
      const auto heads = find(program, "head.logits.wgrad", {}, plan::Stage::kBackward);
      const auto ends = find(program, "embedding.grad", {}, plan::Stage::kBackward);
      REQUIRE(heads.size() == 2);
      REQUIRE(ends.size() == 2);
      // Untied, with small buckets, the head's table has a bucket of its own.
      REQUIRE(tables.size() == (!tied && bucket == 1 ? 4 : 2));
      const std::size_t last_of_first = tables.size() / 2 - 1;  // the one that the embedding writes to
      const bool one_buffer = tied || bucket > 1;
      CHECK(order.runs_before(tables[last_of_first], heads[0]) == one_buffer);
      CHECK(order.runs_before(tables.back(), heads[1]) == one_buffer);
      CHECK(order.runs_before(tables[last_of_first], ends[0]));
      CHECK(order.runs_before(heads[0], tables[last_of_first + 1]));  // nothing is left over from the first micro-batch
    }
  }
}

TEST_CASE("planner: ZeRO-1 gathers in forward order beside the first forward pass") {
  Strategy s = base(2);
  s.zero = 1;
  const plan::Program program = make_plan(kShape, s).programs[0];
  const StreamOrder order{program};
  const auto gathers = find(program, "parameter.bucket", {}, plan::Stage::kForward);
  REQUIRE(gathers.size() > 20);
  const std::size_t embedding = only(program, "embedding", {}, plan::Stage::kForward);
  const std::size_t head = only(program, "head.logits", {}, plan::Stage::kForward);
  CHECK(order.runs_before(gathers.front(), embedding));
  CHECK_FALSE(order.runs_before(gathers.back(), embedding));
  CHECK(order.runs_before(gathers.back(), head));
  s.overlap_param_gather = false;
  const plan::Program after = make_plan(kShape, s).programs[0];
  const auto late = find(after, "parameter.bucket", {}, plan::Stage::kOptimizer);
  REQUIRE(late.size() == gathers.size());
  CHECK(StreamOrder{after}.runs_before(only(after, "optimizer.update", {}, plan::Stage::kOptimizer), late.front()));
}

// Prefetch 1: layer 2's gather runs beside layer 1, behind layer 0, whose buffer it takes.
TEST_CASE("planner: ZeRO-3 gathers one unit ahead") {
  Strategy s = base(2);
  s.zero = 3;
  const plan::Program program = make_plan(kShape, s).programs[0];
  const StreamOrder order{program};
  // In issue order: the root and layer 0 at the embedding, then one with each layer.
  std::vector<std::size_t> gathers;
  for (std::size_t n = 0; n < program.instructions.size(); ++n)
    if (label_of(program, program.instructions[n]) == "parameter.unit" &&
        std::holds_alternative<plan::Collective>(program.instructions[n].body))
      gathers.push_back(n);
  REQUIRE(gathers.size() == 1 + 4 + 4);
  const auto qkv = [&](std::uint16_t layer) { return only(program, "layer.attention.qkv", layer, plan::Stage::kForward); };
  for (std::uint16_t layer = 0; layer < 4; ++layer) CHECK(order.runs_before(gathers[1U + layer], qkv(layer)));
  CHECK_FALSE(order.runs_before(gathers[3], qkv(1)));
  CHECK_FALSE(order.runs_before(qkv(1), gathers[3]));
  CHECK(order.runs_before(qkv(0), gathers[3]));
}

TEST_SUITE_END();
