#include <doctest/doctest.h>

#include "models/workload/presets.hpp"
#include "tests/support/workload_shapes.hpp"

using namespace stepcast;
using namespace stepcast::workload;
using namespace stepcast::test;

TEST_SUITE_BEGIN("unit");

namespace {

BlockOptions llama_options(int tensor_parallel, bool sequence_parallel) {
  BlockOptions options;
  options.sequence = 8192;
  options.tensor_parallel = tensor_parallel;
  options.sequence_parallel = sequence_parallel;
  return options;
}

std::vector<std::string> names(const std::vector<Step>& steps) {
  std::vector<std::string> list;
  for (const Step& step : steps)
    list.push_back(std::visit([](const auto& s) { return s.name; }, step));
  return list;
}

const plan::Kernel& kernel(const std::vector<Step>& steps, const char* name) {
  const std::size_t index = find_step(steps, name);
  REQUIRE(index < steps.size());
  return std::get<Operator>(steps[index]).kernel;
}

constexpr std::int64_t kActivation = 8192LL * 4096 * 2;  // b s h in bf16

}  // namespace

TEST_CASE("workload: one rank's Llama layer, forward") {
  CHECK(names(make_layer(llama3_8b(), 0, llama_options(1, false)).forward) ==
        std::vector<std::string>{"norm1", "attention.qkv", "attention.rotary", "attention.core",
                                 "attention.out", "residual1", "norm2", "mlp.up", "mlp.activation",
                                 "mlp.down", "residual2"});
}

// GPT with 16 heads: on 4 ranks each has 4 score matrices of a sequence, which the fused softmax takes at once; on 8 ranks it has 2, and
// each of cast, scale, mask, softmax and cast is a kernel, unless there are two sequences.
TEST_CASE("workload: fused softmax wants a multiple of four score matrices") {
  const auto launches = [](int tensor_parallel, std::int64_t micro_batch) {
    BlockOptions options;
    options.sequence = 1024;
    options.tensor_parallel = tensor_parallel;
    options.micro_batch = micro_batch;
    options.attention = AttentionKernel::kUnfused;
    const Block layer = make_layer(gpt_shape(1, 1024, 16), 0, options);
    CHECK(kernel(layer.forward, "attention.softmax").launches == kernel(layer.backward, "attention.softmax.grad").launches);
    return kernel(layer.forward, "attention.softmax").launches;
  };
  CHECK(launches(4, 1) == 1);
  CHECK(launches(8, 1) == 5);
  CHECK(launches(8, 2) == 1);
}

// Shoeybi et al. 2019, figure 4: one all-reduce per half in forward (g) and one in backward (f), of
// b s h; the backward ones run beside the weight gradient that follows.
TEST_CASE("workload: tensor parallelism all-reduces twice each way") {
  const Block block = make_layer(llama3_8b(), 0, llama_options(8, false));
  const auto forward = collectives(block.forward);
  REQUIRE(forward.size() == 2);
  for (const auto& c : forward) {
    CHECK(c.kind == plan::CollectiveKind::kAllReduce);
    CHECK(c.bytes.count() == kActivation);
    CHECK_FALSE(c.overlaps_next);
  }
  CHECK(find_step(block.forward, "attention.all_reduce") ==
        find_step(block.forward, "attention.out") + 1);
  CHECK(find_step(block.forward, "mlp.all_reduce") == find_step(block.forward, "mlp.down") + 1);
  const auto backward = collectives(block.backward);
  REQUIRE(backward.size() == 2);
  for (const auto& c : backward) {
    CHECK(c.kind == plan::CollectiveKind::kAllReduce);
    CHECK(c.bytes.count() == kActivation);
    CHECK(c.overlap_steps == 1);
    CHECK(c.overlaps_next);
  }
  const std::size_t at = find_step(block.backward, "mlp.up.dgrad.all_reduce");
  CHECK(std::get<Operator>(block.backward.at(at + 1)).kernel.pass == plan::Pass::kWeightGrad);
}

// Korthikanti et al. 2022, section 4.2.2: all-gather and reduce-scatter in place of each
// all-reduce, and one more all-gather per half in backward for the sharded input of the weight
// gradient.
TEST_CASE("workload: sequence parallelism gathers and scatters, and regathers saved inputs") {
  const Block block = make_layer(llama3_8b(), 0, llama_options(8, true));
  const auto count = [](const std::vector<Step>& steps, plan::CollectiveKind kind) {
    int n = 0;
    for (const auto& c : collectives(steps)) {
      CHECK(c.bytes.count() == kActivation);
      n += c.kind == kind ? 1 : 0;
    }
    return n;
  };
  CHECK(count(block.forward, plan::CollectiveKind::kAllGather) == 2);
  CHECK(count(block.forward, plan::CollectiveKind::kReduceScatter) == 2);
  CHECK(count(block.backward, plan::CollectiveKind::kAllGather) == 4);
  CHECK(count(block.backward, plan::CollectiveKind::kReduceScatter) == 2);
  // regather, dX, scatter, dW: the gathered input is wanted by dW, the scattered dX after it.
  const std::size_t at = find_step(block.backward, "mlp.up.regather");
  CHECK(std::get<BlockCollective>(block.backward.at(at)).overlap_steps == 2);
  CHECK(find_step(block.backward, "mlp.up.dgrad") == at + 1);
  CHECK(find_step(block.backward, "mlp.up.dgrad.scatter") == at + 2);
  CHECK(std::get<BlockCollective>(block.backward.at(at + 2)).overlap_steps == 1);
  CHECK(find_step(block.backward, "mlp.up.wgrad") == at + 3);
  // Norms and residual sums work on an eighth of the tokens.
  CHECK(kernel(block.forward, "norm1").read.count() == kActivation / 8);
  CHECK(kernel(block.forward, "residual1").written.count() == kActivation / 8);
}

TEST_CASE("workload: a parallel block reduces once") {
  const ModelShape falcon = find_preset("falcon-7b").shape;
  BlockOptions options;
  options.sequence = 2048;
  options.tensor_parallel = 1;
  CHECK(names(make_layer(falcon, 0, options).forward) ==
        std::vector<std::string>{"norm1", "attention.qkv", "attention.rotary", "attention.core",
                                 "attention.out", "mlp.up", "mlp.activation", "mlp.down",
                                 "block.sum", "residual1"});
  const ModelShape neox = find_preset("gpt-neox-20b").shape;
  options.tensor_parallel = 8;
  const Block block = make_layer(neox, 0, options);
  CHECK(collectives(block.forward).size() == 1);
  CHECK(collectives(block.backward).size() == 2);  // its two norms have an input gradient each
  const Block shared = make_layer(find_preset("phi-2").shape, 0, options);
  CHECK(collectives(shared.forward).size() == 1);
  CHECK(collectives(shared.backward).size() == 1);
}

// Llama-3-70B's 8 KV heads on 16 ranks: each rank has 4 query heads and a copy of one KV head.
TEST_CASE("workload: fewer KV heads than ranks are replicated") {
  BlockOptions options = llama_options(16, true);
  const Block block = make_layer(find_preset("llama3-70b").shape, 0, options);
  CHECK(kernel(block.forward, "attention.qkv").gemm->n == (4 + 2 * 1) * 128);
  CHECK(kernel(block.forward, "attention.core").attention->kv_heads == 1);
}

TEST_CASE("workload: GEMM shapes of the fused projections") {
  const Block block = make_layer(llama3_8b(), 0, llama_options(4, false));
  CHECK(*kernel(block.forward, "attention.qkv").gemm == plan::GemmShape{1, 8192, 6144 / 4, 4096});
  CHECK(*kernel(block.forward, "mlp.up").gemm == plan::GemmShape{1, 8192, 2 * 14336 / 4, 4096});
  CHECK(*kernel(block.backward, "mlp.up.dgrad").gemm ==
        plan::GemmShape{1, 8192, 4096, 2 * 14336 / 4});
  CHECK(*kernel(block.backward, "mlp.up.wgrad").gemm ==
        plan::GemmShape{1, 2 * 14336 / 4, 4096, 8192});
  // bytes: A and B once, C once; dW is added into fp32.
  CHECK(kernel(block.forward, "mlp.up").read.count() == 2LL * (8192 * 4096 + 4096 * 7168));
  CHECK(kernel(block.backward, "mlp.up.wgrad").written.count() == 4LL * 4096 * 7168);
}

TEST_CASE("workload: unfused kernels are more and move more") {
  BlockOptions options;
  options.sequence = 1024;
  options.dropout = 0.1;
  options.attention = AttentionKernel::kUnfused;
  const ModelShape shape = gpt_shape(2, 1024, 16);
  const auto totals = [&](const std::vector<Step>& steps) {
    std::pair<int, std::int64_t> sum{0, 0};
    for (const Step& step : steps)
      if (const auto* op = std::get_if<Operator>(&step)) {
        sum.first += op->kernel.launches;
        sum.second += op->kernel.read.count() + op->kernel.written.count();
      }
    return sum;
  };
  const Block fused = make_layer(shape, 0, options);
  options.fused_kernels = false;
  const Block unfused = make_layer(shape, 0, options);
  CHECK(totals(unfused.forward).first > totals(fused.forward).first);
  CHECK(totals(unfused.forward).second > totals(fused.forward).second);
  CHECK(totals(unfused.backward).first > totals(fused.backward).first);
  CHECK(totals(unfused.backward).second > totals(fused.backward).second);
  CHECK(gemm_flops(unfused.forward) == gemm_flops(fused.forward));
  CHECK(find_step(unfused.forward, "residual1.dropout") < unfused.forward.size());
}

int launches(const std::vector<Step>& steps) {
  int sum = 0;
  for (const Step& step : steps)
    if (const auto* op = std::get_if<Operator>(&step)) sum += op->kernel.launches;
  return sum;
}

// Megatron-LM before Megatron-Core. Forward: 2 norms, 4 projections, 2 batched products, softmax,
// dropout, heads joined, activation, 2 residuals = 14.
// Backward: 8 GEMMs of the projections, 4 batched products, softmax, dropout, QKV gradient joined,
// activation, 2 residual dropouts, 2 joins of residual gradients, 4 bias sums, norms 2 x 2 = 28;
// and one more for each of the 12 parameter tensors.
TEST_CASE("workload: kernels of a GPT layer, counted by hand") {
  BlockOptions options;
  options.sequence = 1024;
  options.dropout = 0.1;
  options.attention = AttentionKernel::kUnfused;
  const ModelShape shape = gpt_shape(2, 1024, 16);
  const Block fused = make_layer(shape, 0, options);
  CHECK(launches(fused.forward) == 14);
  CHECK(launches(fused.backward) == 28);
  options.fused_accumulation = false;
  const Block separate = make_layer(shape, 0, options);
  CHECK(separate.matrix_count == 12);
  CHECK(launches(separate.forward) == 14);
  CHECK(launches(separate.backward) == 28 + 12);
}

TEST_CASE("workload: an eager cross-entropy runs more kernels through fp32 copies") {
  BlockOptions options;
  options.sequence = 1024;
  const ModelShape shape = gpt_shape(2, 1024, 16);
  const Block fused = make_head(shape, options, true);
  options.fused_loss = false;
  const Block eager = make_head(shape, options, true);
  CHECK(launches(eager.forward) == launches(fused.forward) + 4);
  CHECK(launches(eager.backward) == launches(fused.backward) + 1);
}

TEST_CASE("workload: Gemma's four norms and head norms") {
  const Block block = make_layer(find_preset("gemma3-4b").shape, 0, llama_options(1, false));
  int norms = 0;
  for (const Step& step : block.forward)
    if (const auto* op = std::get_if<Operator>(&step))
      norms += op->kernel.op == plan::OpClass::kNorm ? 1 : 0;
  CHECK(norms == 5);
  CHECK(find_step(block.forward, "norm2.post") == find_step(block.forward, "mlp.down") + 1);
}

TEST_CASE("workload: FP8 runs the linear layers only") {
  BlockOptions options = llama_options(1, false);
  options.gemm_dtype = plan::Dtype::kFp8;
  const Block block = make_layer(llama3_8b(), 0, options);
  CHECK(kernel(block.forward, "attention.qkv").dtype == plan::Dtype::kFp8);
  CHECK(kernel(block.forward, "attention.core").dtype == plan::Dtype::kBf16);
  CHECK(kernel(block.forward, "attention.qkv").read.count() == 8192LL * 4096 + 4096 * 6144);
  CHECK(find_step(block.forward, "attention.qkv.cast") + 1 ==
        find_step(block.forward, "attention.qkv"));
  CHECK(kernel(make_head(llama3_8b(), options, false).forward, "head.logits").dtype ==
        plan::Dtype::kBf16);
}

TEST_CASE("workload: embedding and head of one rank") {
  const BlockOptions options = llama_options(8, true);
  CHECK(padded_vocab(llama3_8b(), options) == 129'024);  // 126 * 128 * 8
  const Block embedding = make_embedding(llama3_8b(), options);
  CHECK(collectives(embedding.forward).front().kind == plan::CollectiveKind::kReduceScatter);
  CHECK(collectives(embedding.backward).front().kind == plan::CollectiveKind::kAllGather);
  CHECK(embedding.parameters == 129'024 / 8 * 4096);
  const Block head = make_head(llama3_8b(), options, false);
  CHECK(kernel(head.forward, "head.logits").gemm->n == 129'024 / 8);
  int small = 0;
  for (const auto& c : collectives(head.forward)) small += c.bytes.count() == 8192 * 4 ? 1 : 0;
  CHECK(small == 3);
  CHECK(head.parameters == 129'024 / 8 * 4096 + 4096);
  CHECK(boundary_activation(llama3_8b(), options).count() == kActivation / 8);
}

TEST_CASE("workload: tied weights on one stage count once") {
  BlockOptions options;
  options.sequence = 1024;
  options.vocab_padding = 1;
  const ModelShape shape = find_preset("gpt2").shape;
  CHECK(make_head(shape, options, true).parameters == 2 * 768);
  CHECK(make_head(shape, options, false).parameters == 2 * 768 + 50257 * 768);
}

TEST_SUITE_END();
