// Low-rank adapters: closed forms of what is held, multiplied, sent and kept (models/workload/adapters.hpp).
#include <doctest/doctest.h>

#include "models/parallel/planner.hpp"
#include "sim/plan/check.hpp"
#include "tests/support/plan_sums.hpp"
#include "tests/support/workload_shapes.hpp"

using namespace stepcast;
using namespace stepcast::parallel;
using namespace stepcast::test;
using plan::Category;
using plan::CollectiveKind;
using plan::Purpose;
using workload::Adapters;
using workload::Block;
using workload::BlockOptions;
using workload::FourBits;

TEST_SUITE_BEGIN("unit");

namespace {

constexpr Adapters kEverywhere{.rank = 16, .qkv = true, .out = true, .up = true, .down = true};
constexpr std::int64_t kHidden = 4096;
constexpr std::int64_t kQkv = (32 + 16) * 128;
constexpr std::int64_t kFfn = 14336;
// Matrices of a layer of Llama-3-8B, and all its parameters.
constexpr std::int64_t kMatrices = kHidden * kQkv + kHidden * kHidden + 3 * kHidden * kFfn;
constexpr std::int64_t kLayer = kMatrices + 2 * kHidden;
constexpr std::int64_t kModel = 8'030'261'248;
// r (k + n) of qkv, out, up with gate, down.
constexpr std::int64_t kAdapters = 16 * ((kHidden + kQkv) + 2 * kHidden + (kHidden + 2 * kFfn) + (kFfn + kHidden));

BlockOptions options(const Adapters& adapters, int t = 1, bool sequence_parallel = false) {
  BlockOptions o;
  o.sequence = 1024;
  o.tensor_parallel = t;
  o.sequence_parallel = sequence_parallel;
  o.adapters = adapters;
  return o;
}

Strategy tuned(const Adapters& adapters, std::int32_t dp = 1) {
  Strategy s;
  s.sequence = 1024;
  s.dp = dp;
  s.global_batch = 2 * dp;  // two micro-batches
  s.adapters = adapters;
  return s;
}

double pass_flops(const Block& block, plan::Pass pass) {
  double sum = 0;
  for (const workload::Step& step : block.backward)
    if (const auto* op = std::get_if<workload::Operator>(&step))
      if (op->kernel.pass == pass && op->kernel.op == plan::OpClass::kGemm) sum += op->kernel.flops.si();
  return sum;
}

std::int64_t sent(const std::vector<workload::Step>& steps, std::string_view part) {
  std::int64_t sum = 0;
  for (const auto& c : collectives(steps))
    if (c.name.find(part) != std::string::npos) sum += c.bytes.count();
  return sum;
}

std::int64_t kept(const Block& block, std::string_view name) {
  for (const auto& tensor : block.saved)
    if (tensor.name == name) return tensor.size.count();
  return 0;
}

std::int64_t purpose_bytes(const plan::Program& program, CollectiveKind kind) {
  return sum_collectives(program, [&](const plan::Instruction& i, const plan::Collective& c) {
           return c.purpose == Purpose::kData && c.kind == kind && label_of(program, i) != "optimizer.norm";
         }).bytes;
}

}  // namespace

TEST_CASE("adapters: a layer trains r (k + n) a matrix and freezes all else") {
  const Block block = make_layer(llama3_8b(), 0, options(kEverywhere));
  CHECK(block.parameters == kAdapters);
  CHECK(block.matrix_count == 8);
  CHECK(block.frozen.dense.count() == 2 * kLayer);
  CHECK(block.frozen.scales.count() == 0);
  CHECK(count_adapters(llama3_8b(), kEverywhere).total == 32 * kAdapters);
  const Block queries = make_layer(llama3_8b(), 0, options({.rank = 8}));
  CHECK(queries.parameters == 8 * (kHidden + kQkv));
}

// 2 R k n for the input gradient of each matrix; 2 R r (k + n) for that through each adapter, and again for its weights.
TEST_CASE("adapters: input gradients flow, frozen weights have none") {
  const Block block = make_layer(llama3_8b(), 0, options(kEverywhere));
  CHECK(pass_flops(block, plan::Pass::kInputGrad) == 2.0 * 1024 * (kMatrices + kAdapters));
  CHECK(pass_flops(block, plan::Pass::kWeightGrad) == 2.0 * 1024 * kAdapters);
  CHECK(gemm_flops(make_embedding(llama3_8b(), options(kEverywhere)).backward) == 0.0);
  CHECK(make_embedding(llama3_8b(), options(kEverywhere)).backward.empty());
  const Block head = make_head(llama3_8b(), options(kEverywhere), true);
  CHECK(head.parameters == 0);
  CHECK(pass_flops(head, plan::Pass::kWeightGrad) == 0.0);
  CHECK(pass_flops(head, plan::Pass::kInputGrad) == 2.0 * 1024 * 128256 * kHidden);
}

TEST_CASE("adapters: what only frozen weights' gradients would read is not kept") {
  BlockOptions full = options({});
  full.adapters.reset();
  const Block all = make_layer(llama3_8b(), 0, full);
  const Block queries = make_layer(llama3_8b(), 0, options({.rank = 16}));
  CHECK(kept(all, "mlp.up.input") == 1024 * kHidden * 2);
  CHECK(kept(queries, "mlp.up.input") == 0);
  CHECK(kept(queries, "mlp.down.input") == 0);
  CHECK(kept(queries, "attention.qkv.input") == 1024 * kHidden * 2);
  CHECK(kept(queries, "attention.output") == kept(all, "attention.output"));  // flash reads it again
  CHECK(kept(queries, "attention.qkv.lora_b.input") == 1024 * 16 * 2);
  CHECK(saved_bytes(all) - saved_bytes(queries) == 1024 * (kHidden + kFfn - 16) * 2);
  CHECK(kept(make_head(llama3_8b(), options({}), true), "head.logits.input") == 0);
}

// Of R r and R n elements of 2 bytes. Columns (qkv, up): X A gathered; rows (out, down): X A all-reduced, the output
// gathered. Backward: dY B' all-reduced; under sequence parallelism dY of the rows gathered for it.
TEST_CASE("adapters: what tensor-parallel ranks send for them") {
  for (const bool sequence_parallel : {false, true}) {
    const Block block = make_layer(llama3_8b(), 0, options(kEverywhere, 4, sequence_parallel));
    const std::int64_t narrow = 1024 * 16 * 2;
    const std::int64_t wide = 1024 * kHidden * 2;
    CHECK(block.parameters == kAdapters / 4);
    CHECK(sent(block.forward, "lora_a.gather") == 2 * narrow);
    CHECK(sent(block.forward, "lora_a.all_reduce") == 2 * narrow);
    CHECK(sent(block.forward, "lora_b.gather") == 2 * wide);
    CHECK(sent(block.backward, "lora_b.dgrad.all_reduce") == 4 * narrow);
    CHECK(sent(block.backward, "lora.grad.gather") == (sequence_parallel ? 2 * wide : 0));
    CHECK(sent(block.backward, "regather") == (sequence_parallel ? 2 * wide : 0));
    // Where weight gradients are put off: inputs (of columns this rank's tokens), X A, dY, dY B'.
    const std::int64_t tokens = sequence_parallel ? 1024 / 4 : 1024;
    CHECK(block.weight_inputs.count() == 2 * (2 * tokens * kHidden + 1024 * (kHidden + kFfn) / 4 + 4 * 1024 * 16));
    CHECK(block.weight_gradients.count() == 2 * (1024 * (kQkv + 2 * kFfn) / 4 + 2 * 1024 * kHidden + 4 * 1024 * 16));
    // Without adapters on columns no input is gathered again.
    const Block rows = make_layer(llama3_8b(), 0, options({.rank = 16, .qkv = false, .out = true}, 4, sequence_parallel));
    CHECK(sent(rows.backward, "regather") == 0);
  }
}

// QLoRA section 3: 4 + 0.127 bits a parameter, or 4.5.
TEST_CASE("adapters: bytes of a 4-bit base") {
  CHECK((workload::packed_bytes(1 << 20) + workload::scale_bytes({.double_quantised = true}, 1 << 20)) * 8.0 / (1 << 20) == doctest::Approx(4.127).epsilon(1e-4));
  CHECK((workload::packed_bytes(1 << 20) + workload::scale_bytes({.double_quantised = false}, 1 << 20)) * 8.0 / (1 << 20) == 4.5);
  Adapters adapters = kEverywhere;
  adapters.base = FourBits{};
  const Block block = make_layer(llama3_8b(), 0, options(adapters));
  CHECK(block.frozen.dense.count() == kMatrices / 2 + 2 * 2 * kHidden);
  CHECK(block.frozen.scales.count() == kMatrices / 64 + kMatrices / 64 / 256 * 4);
  // Four matrices, back to 16 bits before the forward product and before the input gradient.
  for (const auto* steps : {&block.forward, &block.backward}) {
    std::int64_t written = 0;
    int count = 0;
    for (const workload::Step& step : *steps) {
      const auto* op = std::get_if<workload::Operator>(&step);
      if (op == nullptr || !op->name.ends_with("dequantise")) continue;
      ++count;
      written += op->kernel.written.count();
    }
    CHECK(count == 4);
    CHECK(written == 2 * kMatrices + 2 * 4 * kMatrices / 64);
  }
}

TEST_CASE("adapters: a worker holds the model as it is stored, gradients and states of adapters") {
  const Holdings held = holdings(make_plan(llama3_8b(), tuned(kEverywhere)).programs[0]);
  CHECK(held.end_of(Category::kParameters) == 2 * (kModel + 32 * kAdapters));
  CHECK(held.end_of(Category::kGradients) == 4 * 32 * kAdapters);
  CHECK(held.end_of(Category::kOptimizer) == 12 * 32 * kAdapters);

  Adapters adapters = kEverywhere;
  adapters.base = FourBits{};
  const Holdings packed = holdings(make_plan(llama3_8b(), tuned(adapters)).programs[0]);
  const std::int64_t scales = 32 * (kMatrices / 64 + kMatrices / 64 / 256 * 4);
  const std::int64_t others = kModel - 32 * kMatrices;
  CHECK(packed.end_of(Category::kParameters) == 32 * kMatrices / 2 + scales + 2 * others + 2 * 32 * kAdapters);

  Strategy sharded = tuned(adapters, 4);
  sharded.zero = 3;
  const Holdings quarter = holdings(make_plan(llama3_8b(), sharded).programs[0]);
  CHECK(quarter.end_of(Category::kParameters) == (32 * kMatrices / 2 + 2 * others + 2 * 32 * kAdapters) / 4 + scales);
}

TEST_CASE("adapters: data-parallel ranks reduce adapters alone, and gather all that is sharded") {
  const std::int64_t trained = 32 * kAdapters;
  CHECK(purpose_bytes(make_plan(llama3_8b(), tuned(kEverywhere, 2)).programs[0], CollectiveKind::kAllReduce) == 4 * trained);
  Strategy s = tuned(kEverywhere, 2);
  s.zero = 1;
  CHECK(purpose_bytes(make_plan(llama3_8b(), s).programs[0], CollectiveKind::kReduceScatter) == 4 * trained);
  CHECK(purpose_bytes(make_plan(llama3_8b(), s).programs[0], CollectiveKind::kAllGather) == 2 * trained);
  // Two micro-batches: layers gathered twice, the root once.
  s.zero = 3;
  const plan::Program program = make_plan(llama3_8b(), s).programs[0];
  CHECK(purpose_bytes(program, CollectiveKind::kReduceScatter) == 2 * 4 * trained);
  CHECK(purpose_bytes(program, CollectiveKind::kAllGather) == 2 * 2 * (2 * 32 * (kLayer + kAdapters) + kModel - 32 * kLayer));
}

TEST_CASE("adapters: plans of every kind are sound") {
  int legal = 0;
  for (const std::int32_t tp : {1, 2})
    for (const std::int32_t pp : {1, 2, 4})
      for (const int zero : {0, 1, 3})
        for (const auto recompute : {workload::Recompute::kNone, workload::Recompute::kFull})
          for (const auto schedule : {Schedule::kOneFOneB, Schedule::kZbH1}) {
            Strategy s = tuned({.rank = 4, .qkv = true, .out = pp == 2, .base = tp == 2 ? std::optional{FourBits{}} : std::nullopt}, 2);
            s.tp = tp;
            s.pp = pp;
            s.zero = zero;
            s.global_batch = 16;
            s.sequence_parallel = tp > 1;
            s.recompute = recompute;
            s.schedule = schedule;
            if (pp == 4) s.layers_per_stage = {0, 2, 2, 0};  // stages with nothing to train
            workload::ModelShape shape = gpt_shape(4, 256, 4);
            if (!check(shape, s).empty()) continue;
            ++legal;
            const auto faults = plan::check(make_plan(shape, s));
            if (!faults.empty()) FAIL_CHECK(to_text(faults.front()));
          }
  CHECK(legal > 40);
}

// Two thirds for frozen weights; attention and adapters whole. NeMo's count of LoRA (Megatron-Bridge flop_utils.py).
TEST_CASE("adapters: model FLOPs") {
  using workload::FlopsConvention;
  const double s = 8192;
  const double all = model_flops_per_sequence(llama3_8b(), 8192, FlopsConvention::kMegatron).si();
  const double weights = 32.0 * kMatrices + 128256.0 * kHidden;
  const double tuned_flops = model_flops_per_sequence(llama3_8b(), 8192, FlopsConvention::kMegatron, kEverywhere).si();
  CHECK(all - tuned_flops == doctest::Approx(2 * s * weights - 6 * s * 32 * kAdapters));
}

TEST_CASE("adapters: experts have their own, and latents too") {
  workload::ModelShape shape = llama3_8b();
  shape.experts = workload::ExpertShape{.count = 8, .top_k = 2, .ffn = 1024};
  const Block block = make_layer(shape, 0, options(kEverywhere));
  const std::int64_t expert = 16 * ((kHidden + 2 * 1024) + (1024 + kHidden));
  CHECK(block.routed_parameters == 8 * expert);
  CHECK(block.parameters == 8 * expert + 16 * (kHidden + kQkv + 2 * kHidden));
  CHECK(count_adapters(shape, kEverywhere).total - count_adapters(shape, kEverywhere).active == 32 * 6 * expert);

  workload::ModelShape latent = llama3_8b();
  latent.latent = workload::LatentAttention{.q_rank = 512, .kv_rank = 256, .nope_dim = 64, .rope_dim = 32, .value_dim = 64};
  latent.head_dim = 96;
  const std::int64_t into = 16 * ((kHidden + 512) + (kHidden + 256 + 32));
  const std::int64_t out_of = 16 * ((512 + 32 * 96) + (256 + 32 * 128));
  const BlockOptions whole = options({.rank = 16});
  CHECK(make_layer(latent, 0, whole).parameters == into + out_of);
  CHECK(whole_adapter_elements(latent, whole) == into);
}

TEST_CASE("adapters: what is refused") {
  const auto problem = [](Strategy s, const workload::ModelShape& shape = llama3_8b()) {
    const auto errors = check(shape, s);
    return errors.empty() ? std::string{} : errors.front().path + ": " + errors.front().problem;
  };
  CHECK(problem(tuned({.rank = 16, .qkv = false})) == "training.lora.targets: adapters on nothing: nothing would be trained");
  Strategy cut = tuned({.rank = 6});
  cut.tp = 4;
  CHECK(problem(cut) == "training.lora.rank: a rank of 6 cannot be cut over 4 tensor-parallel ranks");
  Strategy fp8 = tuned({.rank = 16, .base = FourBits{}});
  fp8.gemm_dtype = plan::Dtype::kFp8;
  CHECK(problem(fp8) == "training.lora.base: a 4-bit base is brought back to 16 bits, not to fp8");
  workload::ModelShape ahead = llama3_8b();
  ahead.predicted_ahead = 1;
  CHECK(problem(tuned({.rank = 16}), ahead) == "model.mtp_layers: prediction modules beside adapters are not modelled");
}

TEST_SUITE_END();
