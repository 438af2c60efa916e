// What is kept and what is computed again, by layers and by parts of a layer: closed forms.
#include <doctest/doctest.h>

#include "models/parallel/planner.hpp"
#include "sim/plan/check.hpp"
#include "tests/support/plan_sums.hpp"
#include "tests/support/workload_shapes.hpp"

using namespace stepcast;
using namespace stepcast::parallel;
using namespace stepcast::test;
using plan::Category;
using workload::Block;
using workload::BlockOptions;
using workload::Recompute;
using workload::RecomputeParts;

TEST_SUITE_BEGIN("unit");

namespace {

constexpr std::int64_t kHidden = 4096;
constexpr std::int64_t kFfn = 14336;
constexpr std::int64_t kKeys = 8 * 128;

BlockOptions options(Recompute recompute, RecomputeParts parts = {}) {
  BlockOptions o;
  o.sequence = 1024;
  o.recompute = recompute;
  o.recompute_parts = parts;
  return o;
}

constexpr RecomputeParts only(bool RecomputeParts::*part) {
  RecomputeParts parts{.attention_core = false};
  parts.*part = true;
  return parts;
}

Block layer(Recompute recompute, RecomputeParts parts = {}) { return make_layer(llama3_8b(), 0, options(recompute, parts)); }

// Eight layers of GPT, one micro-batch.
Strategy full(RecomputeSpan span, std::int64_t layers) {
  Strategy s;
  s.sequence = 512;
  s.recompute = Recompute::kFull;
  s.recompute_span = span;
  s.recompute_layers = layers;
  return s;
}

struct GptSizes {
  std::int64_t kept = 0;   // of a layer without recomputation
  std::int64_t input = 0;  // of one with it
  std::int64_t again = 0;  // what it brings back
  std::int64_t head = 0;
  double forward = 0;      // FLOPs of products and attention
};
GptSizes sizes(const workload::ModelShape& shape) {
  BlockOptions o = options(Recompute::kNone);
  o.sequence = 512;
  GptSizes result;
  result.kept = saved_bytes(make_layer(shape, 0, o));
  result.head = saved_bytes(make_head(shape, o, true));
  o.recompute = Recompute::kFull;
  const Block block = make_layer(shape, 0, o);
  result.input = saved_bytes(block);
  result.again = block.recompute_peak.count();
  result.forward = gemm_flops(block.forward);
  return result;
}

double recomputed(const plan::Program& program) {
  double sum = 0;
  for (const plan::Instruction& i : program.instructions) {
    const auto* c = std::get_if<plan::Compute>(&i.body);
    if (c == nullptr || i.stage != plan::Stage::kRecompute) continue;
    const plan::Kernel& kernel = program.kernels.at(c->kernel.index());
    if (kernel.op == plan::OpClass::kGemm || kernel.op == plan::OpClass::kAttention) sum += kernel.flops.si();
  }
  return sum;
}

}  // namespace

// block N keeps all of the other layers, every N one input of each N-th, uniform N one input for N layers, which come
// back together.
TEST_CASE("recompute: layers by method") {
  const workload::ModelShape shape = gpt_shape(8, 256, 4);
  const GptSizes g = sizes(shape);
  const auto peak = [&](RecomputeSpan span, std::int64_t n) {
    const plan::Plan plan = make_plan(shape, full(span, n));
    CHECK(plan::check(plan).empty());
    return holdings(plan.programs[0]).peak_of(Category::kActivations);
  };
  const auto work = [&](RecomputeSpan span, std::int64_t n) { return recomputed(make_plan(shape, full(span, n)).programs[0]) / g.forward; };
  CHECK(peak(RecomputeSpan::kBlock, 3) == 3 * g.input + 5 * g.kept + g.head);
  CHECK(work(RecomputeSpan::kBlock, 3) == doctest::Approx(3));
  CHECK(work(RecomputeSpan::kBlock, 100) == doctest::Approx(8));
  CHECK(peak(RecomputeSpan::kEvery, 4) == 2 * g.input + 6 * g.kept + g.head);
  CHECK(work(RecomputeSpan::kEvery, 4) == doctest::Approx(2));
  for (const std::int64_t n : {1, 2, 4, 8}) {
    CHECK(peak(RecomputeSpan::kUniform, n) == 8 / n * g.input + std::max(g.head, n * g.again + (n - 1) * g.input));
    CHECK(work(RecomputeSpan::kUniform, n) == doctest::Approx(8));
  }
  CHECK(work(RecomputeSpan::kUniform, 3) == doctest::Approx(8));  // 3, 3 and 2
}

// block counts the layers of each chunk of each stage.
TEST_CASE("recompute: blocks of pipeline stages") {
  const workload::ModelShape shape = gpt_shape(8, 256, 4);
  Strategy s = full(RecomputeSpan::kBlock, 1);
  s.pp = 2;
  s.virtual_stages = 2;
  s.global_batch = 2;
  for (const plan::Program& program : make_plan(shape, s).programs)
    CHECK(recomputed(program) / sizes(shape).forward == doctest::Approx(2 * 2));  // two chunks, two micro-batches
}

TEST_CASE("recompute: parts of a dense layer") {
  const Block none = layer(Recompute::kNone);
  const auto dropped = [&](bool RecomputeParts::*part) { return saved_bytes(none) - saved_bytes(layer(Recompute::kSelective, only(part))); };
  const auto again = [&](bool RecomputeParts::*part) { return gemm_flops(layer(Recompute::kSelective, only(part)).recompute); };
  const std::int64_t r = 1024;
  CHECK(dropped(&RecomputeParts::norms) == 2 * r * kHidden * 2);
  CHECK(dropped(&RecomputeParts::mlp_activations) == r * kFfn * 2);
  CHECK(dropped(&RecomputeParts::expert_activations) == 0);
  CHECK(dropped(&RecomputeParts::up) == r * 2 * kFfn * 2);
  CHECK(again(&RecomputeParts::up) == 2.0 * r * kHidden * 2 * kFfn);
  CHECK(dropped(&RecomputeParts::mlp) == r * 3 * kFfn * 2);
  CHECK(again(&RecomputeParts::mlp) == 2.0 * r * kHidden * 3 * kFfn);
  CHECK(dropped(&RecomputeParts::qkv) == r * (kHidden + 2 * kKeys) * 2);
  CHECK(again(&RecomputeParts::qkv) == 2.0 * r * kHidden * (kHidden + 2 * kKeys));
  CHECK(dropped(&RecomputeParts::attention) == r * (2 * kHidden + 2 * kKeys) * 2 + 32 * r * 4);
  // The fused kernel's work: two products of half a square.
  CHECK(again(&RecomputeParts::attention) == 2.0 * r * kHidden * (kHidden + 2 * kKeys) + 4.0 * kHidden * r * r / 2);
}

TEST_CASE("recompute: an MLP cut over ranks gathers and scatters again") {
  BlockOptions o = options(Recompute::kSelective, only(&RecomputeParts::mlp));
  o.tensor_parallel = 4;
  o.sequence_parallel = true;
  std::int64_t sent = 0;
  for (const auto& c : collectives(make_layer(llama3_8b(), 0, o).recompute)) sent += c.bytes.count();
  CHECK(sent == 2 * 1024 * kHidden * 2);
}

TEST_CASE("recompute: experts as a whole") {
  workload::ModelShape shape = llama3_8b();
  shape.experts = workload::ExpertShape{.count = 8, .top_k = 2, .ffn = 1024, .shared_ffn = 2048};
  const Block block = make_layer(shape, 0, options(Recompute::kSelective, only(&RecomputeParts::experts)));
  for (const auto& tensor : block.saved) {
    CHECK_FALSE(tensor.name.starts_with("experts."));
    CHECK_FALSE(tensor.name.starts_with("router."));
    CHECK_FALSE(tensor.name.starts_with("shared."));
  }
  const double rows = 1024;
  CHECK(gemm_flops(block.recompute) == 2 * rows * kHidden * (8 + 2 * 3 * 1024 + 3 * 2048));
  const Block shared = make_layer(shape, 0, options(Recompute::kSelective, only(&RecomputeParts::shared)));
  CHECK(gemm_flops(shared.recompute) == 2 * rows * kHidden * 3 * 2048);
}

// Kept: the input, queries and values, the attention's output and statistics, half of the gated up projection.
TEST_CASE("recompute: by operator, every second product") {
  const Block block = layer(Recompute::kOperators);
  const std::int64_t r = 1024;
  CHECK(saved_bytes(block) == r * 2 * (kHidden + (kHidden + kKeys) + kHidden + kFfn) + 32 * r * 4);
  CHECK(gemm_flops(block.recompute) == 2.0 * r * kHidden * (kKeys + kHidden + kFfn));
  // With what comes back, all that the backward pass reads is there; queries are kept before they are turned.
  CHECK(saved_bytes(block) + block.recompute_peak.count() == saved_bytes(layer(Recompute::kNone)) + r * 2 * kHidden);
}

TEST_CASE("recompute: by operator, products in fp8 as those in bf16") {
  BlockOptions o = options(Recompute::kOperators);
  o.gemm_dtype = plan::Dtype::kFp8;
  const Block block = make_layer(llama3_8b(), 0, o);
  const std::int64_t r = 1024;
  CHECK(saved_bytes(block) == r * 2 * (kHidden + (kHidden + kKeys) + kHidden + kFfn) + 32 * r * 4);
  CHECK(gemm_flops(block.recompute) == 2.0 * r * kHidden * (kKeys + kHidden + kFfn));
}

TEST_CASE("recompute: what is refused") {
  const auto problem = [](const Strategy& s, const workload::ModelShape& shape) {
    const auto errors = check(shape, s);
    return errors.empty() ? std::string{} : errors.front().path + ": " + errors.front().problem;
  };
  Strategy grouped = full(RecomputeSpan::kUniform, 2);
  grouped.zero = 3;
  CHECK(problem(grouped, gpt_shape(8, 256, 4)) ==
        "memory.recompute_layers: layers computed again together, each gathered for that and again for its gradients, are not modelled");
  Strategy operators = full(RecomputeSpan::kUniform, 1);
  operators.recompute = Recompute::kOperators;
  workload::ModelShape mixture = llama3_8b();
  mixture.experts = workload::ExpertShape{.count = 8, .top_k = 2, .ffn = 1024};
  CHECK(problem(operators, mixture) == "memory.recompute: recomputation by operator is of dense layers with fused attention");
  CHECK(problem(operators, llama3_8b()).empty());
}

TEST_SUITE_END();
