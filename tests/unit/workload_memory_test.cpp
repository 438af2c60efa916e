#include <doctest/doctest.h>

#include "tests/support/workload_shapes.hpp"

using namespace stepcast;
using namespace stepcast::workload;
using namespace stepcast::test;

TEST_SUITE_BEGIN("unit");

namespace {

// A small GPT block whose sums are worked by hand: h = 1024, a = 16, s = 512, b = 2.
//   sbh = 512 * 2 * 1024 = 1'048'576
//   a s^2 b = 16 * 512 * 512 * 2 = 8'388'608 scores
constexpr std::int64_t kSbh = 1'048'576;
constexpr std::int64_t kScores = 8'388'608;

ModelShape small_gpt() {
  return gpt_shape(4, 1024, 16);
}

BlockOptions unfused_attention() {
  BlockOptions options;
  options.micro_batch = 2;
  options.sequence = 512;
  options.attention = AttentionKernel::kUnfused;
  options.dropout = 0.1;
  return options;
}

std::int64_t saved(const BlockOptions& options) {
  return saved_bytes(make_layer(small_gpt(), 0, options));
}

}  // namespace

// Korthikanti et al. 2022, equation 1: sbh (34 + 5 a s / h); 5 a s / h * sbh = 5 a s^2 b.
TEST_CASE("workload: activations of one GPT layer without parallelism") {
  CHECK(saved(unfused_attention()) == 34 * kSbh + 5 * kScores);
}

// Equation 2: sbh (10 + 24/t + 5 a s / (h t)).
TEST_CASE("workload: tensor parallelism shards all but ten bytes an element") {
  BlockOptions options = unfused_attention();
  options.tensor_parallel = 4;
  CHECK(saved(options) == 10 * kSbh + 24 * kSbh / 4 + 5 * kScores / 4);
}

// Equation 4: sbh/t (34 + 5 a s / h).
TEST_CASE("workload: sequence parallelism shards the rest") {
  BlockOptions options = unfused_attention();
  options.tensor_parallel = 4;
  options.sequence_parallel = true;
  CHECK(saved(options) == (34 * kSbh + 5 * kScores) / 4);
}

// Table 2: selective recomputation leaves 34 sbh/t, full recomputation the input, 2 sbh.
TEST_CASE("workload: selective recomputation drops the scores, full keeps the input only") {
  BlockOptions options = unfused_attention();
  options.tensor_parallel = 4;
  options.recompute = Recompute::kFull;
  CHECK(saved(options) == 2 * kSbh);
  CHECK(make_layer(small_gpt(), 0, options).recompute_peak.count() ==
        8 * kSbh + 24 * kSbh / 4 + 5 * kScores / 4);
  options.sequence_parallel = true;
  options.recompute = Recompute::kSelective;
  CHECK(saved(options) == 34 * kSbh / 4);
  const Block block = make_layer(small_gpt(), 0, options);
  CHECK(block.recompute_peak.count() == 5 * kScores / 4);
  REQUIRE(block.recompute.size() == 5);  // scores, softmax, dropout, context, heads joined
  CHECK(std::get<Operator>(block.recompute[0]).kernel ==
        std::get<Operator>(block.forward[find_step(block.forward, "attention.scores")]).kernel);
}

// Without dropout there are no masks: 34 - 2 bytes an element, and of a score only the softmax's
// output (2 B), which is also what multiplies V.
TEST_CASE("workload: no dropout, no masks") {
  BlockOptions options = unfused_attention();
  options.dropout = 0;
  CHECK(saved(options) == 32 * kSbh + 2 * kScores);
}

// Flash attention keeps no score: Q, K, V, the output (the projection's input) and one fp32
// statistic per head and token: 4 a s b bytes. The score-side masks are never stored.
TEST_CASE("workload: flash attention keeps output and log-sum-exp instead of scores") {
  BlockOptions options = unfused_attention();
  options.attention = AttentionKernel::kFlash;
  const std::int64_t statistics = 4 * 16 * 512 * 2;
  CHECK(saved(options) == 34 * kSbh + statistics);
  options.recompute = Recompute::kSelective;  // nothing left to drop
  CHECK(saved(options) == 34 * kSbh + statistics);
  CHECK(make_layer(small_gpt(), 0, options).recompute.empty());
}

// Llama-3-8B, s = 8192, b = 1, bf16, flash, per token and layer, in bytes:
//   norm inputs and outputs 4 * 2 * 4096; Q, K, V 2 * (4096 + 2 * 1024); output 2 * 4096;
//   log-sum-exp 4 * 32; gate and up 2 * 28672; product 2 * 14336.
TEST_CASE("workload: activations of a Llama-3-8B layer") {
  BlockOptions options;
  options.sequence = 8192;
  const std::int64_t token = 32768 + 12288 + 8192 + 128 + 57344 + 28672;
  CHECK(saved_bytes(make_layer(llama3_8b(), 0, options)) == token * 8192);
  options.tensor_parallel = 8;
  options.sequence_parallel = true;
  CHECK(saved_bytes(make_layer(llama3_8b(), 0, options)) == token * 8192 / 8);
}

// Linear layers in FP8 keep their four inputs in one byte; flash attention's own output stays in
// 16 bit beside the FP8 copy for the projection.
TEST_CASE("workload: FP8 linear layers keep one-byte inputs") {
  BlockOptions options;
  options.sequence = 8192;
  options.gemm_dtype = plan::Dtype::kFp8;
  const std::int64_t token = (2 + 1) * 2 * 4096 + 12288 + 8192 + 4096 + 128 + 57344 + 14336;
  CHECK(saved_bytes(make_layer(llama3_8b(), 0, options)) == token * 8192);
}

// Logits: 2 B each beside the 4 B that stay; backward a 2 B gradient beside them, and dX. The weight's gradient (2 B an
// element of 51200 x 1024) comes when the 4 B are gone: smaller here.
TEST_CASE("workload: the logits peak of the head") {
  BlockOptions options;
  options.sequence = 2048;
  const ModelShape shape = gpt_shape(4, 1024, 16, 51200);
  const std::int64_t logits = 2048LL * 51200;
  const Block head = make_head(shape, options, true);
  CHECK(saved_bytes(head) == 2 * 2 * 2048 * 1024 + 4 * logits);
  CHECK(head.forward_workspace.count() == 2 * logits);
  CHECK(head.backward_workspace.count() == 2 * logits + 2 * 2048 * 1024);
  options.tensor_parallel = 4;
  CHECK(make_head(shape, options, true).forward_workspace.count() == 2 * logits / 4);
}

// One token: 4 B of softmax a word, but 2 B x 1024 of its weight's gradient.
TEST_CASE("workload: few tokens and a large vocabulary, and the weight's gradient is the peak") {
  BlockOptions options;
  options.sequence = 1;
  const Block head = make_head(gpt_shape(4, 1024, 16, 51200), options, true);
  CHECK(head.backward_workspace.count() == 2 * 51200 + 2 * 1024 + (2 * 1024 - 4) * 51200);
}

TEST_CASE("workload: copies of the logits") {
  BlockOptions options;
  options.sequence = 2048;
  const ModelShape shape = gpt_shape(4, 1024, 16, 51200);
  const std::int64_t logits = 2048LL * 51200;
  options.logit_copies = 1;
  CHECK(make_head(shape, options, true).forward_workspace.count() == 6 * logits);
  CHECK(make_head(shape, options, true).backward_workspace.count() == 8 * logits + 2 * 2048 * 1024);  // copy and its gradient
}

// Keys and values of both head counts once more, 2 B each: what the ring sends.
TEST_CASE("workload: a ring keeps its own keys and values") {
  BlockOptions options;
  options.sequence = 8192;
  options.context_parallel = 4;
  const Block ring = make_layer(llama3_8b(), 0, options);
  options.context_style = ContextStyle::kAllGather;
  CHECK(saved_bytes(ring) - saved_bytes(make_layer(llama3_8b(), 0, options)) == 2 * 2 * 1024 * 8192 / 4);
}

// The largest weight of a Llama-3-8B layer is gate and up, 28672 x 4096. 16 tokens: beside it the gradients of the residual
// stream, of gate and up, and of what they are computed from.
TEST_CASE("workload: a weight gradient of its own until it is added") {
  BlockOptions options;
  options.sequence = 16;
  CHECK(largest_weight_gradient(make_layer(llama3_8b(), 0, options).backward) == 28672LL * 4096);
  options.fused_accumulation = false;
  CHECK(make_layer(llama3_8b(), 0, options).backward_workspace.count() == 2 * 16 * (4096 + 28672 + 4096) + 2 * 28672LL * 4096);
}

TEST_SUITE_END();
