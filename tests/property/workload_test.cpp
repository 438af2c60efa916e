#include <doctest/doctest.h>

#include <cmath>

#include "models/workload/presets.hpp"
#include "sim/base/random.hpp"
#include "tests/support/workload_shapes.hpp"

using namespace stepcast;
using namespace stepcast::workload;
using namespace stepcast::test;

TEST_SUITE_BEGIN("property");

namespace {

struct Draw {
  ModelShape shape;
  BlockOptions options;
};

// A preset that eight ranks divide, and any options.
Draw draw(Rng& rng) {
  const auto presets = list_presets();
  Draw d;
  do {
    d.shape = presets[rng.below(presets.size())].shape;
  } while (d.shape.heads % 8 != 0 || d.shape.ffn % 8 != 0);
  d.options.micro_batch = 1 + static_cast<std::int64_t>(rng.below(4));
  d.options.sequence = 512 << rng.below(5);
  d.options.tensor_parallel = 1 << rng.below(4);
  d.options.sequence_parallel = rng.below(2) == 1;
  d.options.attention = rng.below(2) == 1 ? AttentionKernel::kFlash : AttentionKernel::kUnfused;
  d.options.recompute = static_cast<Recompute>(rng.below(3));
  d.options.fused_kernels = rng.below(2) == 1;
  d.options.dropout = rng.below(2) == 1 ? 0.1 : 0.0;
  if (rng.below(4) == 0) d.options.gemm_dtype = plan::Dtype::kFp8;
  return d;
}

std::vector<Block> blocks(const Draw& d) {
  return {make_embedding(d.shape, d.options), make_layer(d.shape, 0, d.options),
          make_layer(d.shape, d.shape.layers - 1, d.options), make_head(d.shape, d.options, false)};
}

constexpr int kDraws = 300;

}  // namespace

TEST_CASE("workload: doubling the batch doubles GEMM work, activations and messages") {
  for (std::uint64_t seed = 0; seed < kDraws; ++seed) {
    CAPTURE(seed);
    Rng rng{seed, "workload batch"};
    const Draw one = draw(rng);
    Draw two = one;
    two.options.micro_batch *= 2;
    const auto a = blocks(one);
    const auto b = blocks(two);
    for (std::size_t i = 0; i < a.size(); ++i) {
      CHECK(gemm_flops(b[i].forward) == 2 * gemm_flops(a[i].forward));
      CHECK(gemm_flops(b[i].backward) == 2 * gemm_flops(a[i].backward));
      CHECK(gemm_flops(b[i].recompute) == 2 * gemm_flops(a[i].recompute));
      CHECK(saved_bytes(b[i]) == 2 * saved_bytes(a[i]));
      CHECK(b[i].parameters == a[i].parameters);
      const auto x = collectives(a[i].backward);
      const auto y = collectives(b[i].backward);
      REQUIRE(x.size() == y.size());
      for (std::size_t k = 0; k < x.size(); ++k)
        CHECK(y[k].bytes.count() == 2 * x[k].bytes.count());
    }
  }
}

// With at least as many KV heads as ranks nothing is replicated but norms and row-parallel biases.
TEST_CASE("workload: tensor-parallel shards sum to the whole") {
  for (std::uint64_t seed = 0; seed < kDraws; ++seed) {
    CAPTURE(seed);
    Rng rng{seed, "workload shards"};
    Draw d = draw(rng);
    const double t = d.options.tensor_parallel;
    const bool replicates = d.shape.kv_heads < d.options.tensor_parallel;
    Draw whole = d;
    whole.options.tensor_parallel = 1;
    whole.options.vocab_padding = d.options.vocab_padding * d.options.tensor_parallel;
    const auto shards = blocks(d);
    const auto wholes = blocks(whole);
    for (std::size_t i = 0; i < shards.size(); ++i) {
      CAPTURE(shards[i].name);
      const double shard = t * (gemm_flops(shards[i].forward) + gemm_flops(shards[i].backward));
      const double all = gemm_flops(wholes[i].forward) + gemm_flops(wholes[i].backward);
      if (replicates)
        CHECK(shard >= all * (1 - 1e-12));
      else
        CHECK(shard == doctest::Approx(all).epsilon(1e-12));
      CHECK(shards[i].parameters * d.options.tensor_parallel >= wholes[i].parameters);
      CHECK(shards[i].parameters <= wholes[i].parameters);
      CHECK(saved_bytes(shards[i]) <= saved_bytes(wholes[i]));
    }
  }
}

TEST_CASE("workload: one rank's blocks hold exactly the model's parameters") {
  for (const Preset& preset : list_presets()) {
    CAPTURE(preset.shape.name);
    BlockOptions options;
    options.sequence = 128;
    options.vocab_padding = 1;
    const std::int64_t blocks =
        make_embedding(preset.shape, options).parameters +
        preset.shape.layers * make_layer(preset.shape, 0, options).parameters +
        make_head(preset.shape, options, true).parameters;
    CHECK(blocks == count_parameters(preset.shape).total);
  }
}

// Backward runs two products for each of forward's; flash attention's five for two.
TEST_CASE("workload: backward GEMMs are twice the forward's") {
  for (std::uint64_t seed = 0; seed < kDraws; ++seed) {
    CAPTURE(seed);
    Rng rng{seed, "workload backward"};
    const Draw d = draw(rng);
    for (const Block& block : blocks(d)) {
      double attention = 0;
      for (const Step& step : block.forward)
        if (const auto* op = std::get_if<Operator>(&step))
          if (op->kernel.op == plan::OpClass::kAttention) attention += op->kernel.flops.si();
      CHECK(gemm_flops(block.backward) ==
            doctest::Approx(2 * gemm_flops(block.forward) + 0.5 * attention).epsilon(1e-12));
    }
  }
}

// What the planner relies on: kernels are complete, overlap never runs past the block's end, full
// recomputation repeats the forward pass, recomputation never keeps more.
TEST_CASE("workload: blocks are well formed") {
  for (std::uint64_t seed = 0; seed < kDraws; ++seed) {
    CAPTURE(seed);
    Rng rng{seed, "workload form"};
    const Draw d = draw(rng);
    for (const Block& block : blocks(d)) {
      for (const auto* steps : {&block.forward, &block.recompute, &block.backward}) {
        for (std::size_t i = 0; i < steps->size(); ++i) {
          if (const auto* op = std::get_if<Operator>(&(*steps)[i])) {
            CAPTURE(op->name);
            CHECK(op->kernel.launches >= 1);
            CHECK(op->kernel.read.count() > 0);
            CHECK(op->kernel.written.count() > 0);
            CHECK(std::isfinite(op->kernel.flops.si()));
            CHECK(op->kernel.gemm.has_value() == (op->kernel.op == plan::OpClass::kGemm));
            CHECK(op->kernel.attention.has_value() == (op->kernel.op == plan::OpClass::kAttention));
            CHECK((op->kernel.pass == plan::Pass::kForward) == (steps != &block.backward));
          } else {
            const auto& c = std::get<BlockCollective>((*steps)[i]);
            CHECK(d.options.tensor_parallel > 1);
            CHECK(c.bytes.count() > 0);
            CHECK(c.overlaps_next == (c.overlap_steps > 0));
            CHECK(i + static_cast<std::size_t>(c.overlap_steps) < steps->size());
          }
        }
      }
      CHECK(block.forward_workspace.count() > 0);
      CHECK(block.backward_workspace.count() > 0);
      CHECK(block.matrix_count > 0);
    }
    Draw none = d;
    none.options.recompute = Recompute::kNone;
    CHECK(saved_bytes(make_layer(d.shape, 0, d.options)) <=
          saved_bytes(make_layer(d.shape, 0, none.options)));
  }
}

TEST_SUITE_END();
