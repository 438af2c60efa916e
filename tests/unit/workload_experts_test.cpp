#include <doctest/doctest.h>

#include <cmath>

#include "models/workload/presets.hpp"
#include "models/workload/routing.hpp"
#include "tests/support/workload_shapes.hpp"

using namespace stepcast;
using namespace stepcast::workload;
using namespace stepcast::test;

TEST_SUITE_BEGIN("unit");

namespace {

// Small enough to work by hand: h = 64, 4 heads of 16, 8 experts of width 32, 2 a token, one shared of 32.
ModelShape mixture() {
  ModelShape shape;
  shape.name = "mixture";
  shape.layers = 2;
  shape.hidden = 64;
  shape.heads = shape.kv_heads = 4;
  shape.head_dim = 16;
  shape.ffn = 128;
  shape.vocab = 1024;
  shape.gated_mlp = true;
  shape.experts = ExpertShape{.count = 8, .top_k = 2, .ffn = 32, .shared_ffn = 32};
  shape.layer_has_experts = {false, true};
  return shape;
}

BlockOptions tokens(std::int64_t sequence) {
  BlockOptions options;
  options.sequence = sequence;
  return options;
}

const BlockCollective& collective(const std::vector<Step>& steps, const char* name) {
  return std::get<BlockCollective>(steps.at(find_step(steps, name)));
}
const plan::Kernel& kernel(const std::vector<Step>& steps, const char* name) {
  return std::get<Operator>(steps.at(find_step(steps, name))).kernel;
}

}  // namespace

// Attention 4 * 64^2 = 16'384, two norms 128. Dense MLP 3 * 64 * 128 = 24'576. An expert 3 * 64 * 32 = 6'144;
// eight and a shared one 55'296, router 512.
TEST_CASE("workload: parameters of a layer with experts by hand") {
  const ModelShape shape = mixture();
  CHECK(layer_parameters(shape, 0).total == 16'384 + 128 + 24'576);
  CHECK(layer_parameters(shape, 1).total == 16'384 + 128 + 55'296 + 512);
  CHECK(layer_parameters(shape, 1).routed == 8 * 6'144);
  const ParameterCount count = count_parameters(shape);
  CHECK(count.total - count.active == 6 * 6'144);
  const Block block = make_layer(shape, 1, tokens(128));
  CHECK(block.parameters == layer_parameters(shape, 1).total);
  CHECK(block.routed_parameters == 8 * 6'144);
}

// The same work, each expert's in kernels of its own.
TEST_CASE("workload: experts one after another launch a kernel each") {
  BlockOptions options = tokens(128);
  options.fused_accumulation = false;
  options.gemm_dtype = plan::Dtype::kFp8;
  ModelShape shape = mixture();
  shape.experts->bias = true;
  const Block grouped = make_layer(shape, 1, options);
  options.grouped_experts = false;
  const Block one_by_one = make_layer(shape, 1, options);
  for (const char* name : {"experts.up", "experts.up.cast", "experts.activation", "experts.down"}) {
    CHECK(kernel(grouped.forward, name).launches == 1);
    CHECK(kernel(one_by_one.forward, name).launches == 8);
    CHECK(kernel(one_by_one.forward, name).flops.si() == kernel(grouped.forward, name).flops.si());
    CHECK(kernel(one_by_one.forward, name).read == kernel(grouped.forward, name).read);
  }
  for (const char* name : {"experts.up.dgrad", "experts.up.wgrad", "experts.up.accumulate", "experts.activation.grad"}) CHECK(kernel(one_by_one.backward, name).launches == 8);
  for (const char* name : {"experts.up.bias_grad", "experts.down.bias_grad"}) CHECK(kernel(one_by_one.backward, name).launches == 8 * kernel(grouped.backward, name).launches);
  for (const char* name : {"router", "shared.up"}) CHECK(kernel(one_by_one.forward, name).launches == 1);
}

// 128 tokens, 2 choices each: 256 rows, 32 an expert. Up 2 * 256 * 64 * 64 FLOPs, down half of that.
TEST_CASE("workload: experts run as grouped products over the rows they get") {
  const Block block = make_layer(mixture(), 1, tokens(128));
  const plan::Kernel& up = kernel(block.forward, "experts.up");
  CHECK(*up.gemm == plan::GemmShape{8, 32, 64, 64});
  CHECK(up.flops.si() == 2.0 * 256 * 64 * 64);
  CHECK(up.read.count() == 2 * (256 * 64 + 8 * 64 * 64));
  CHECK(up.written.count() == 2 * 256 * 64);
  CHECK(*kernel(block.forward, "experts.down").gemm == plan::GemmShape{8, 32, 64, 32});
  CHECK(*kernel(block.backward, "experts.up.wgrad").gemm == plan::GemmShape{8, 64, 64, 32});
  CHECK(kernel(block.forward, "router").flops.si() == 2.0 * 128 * 64 * 8);
  CHECK(find_step(block.forward, "dispatch.all_to_all") == block.forward.size());
  // Twice the forward products, and attention five products instead of two.
  const double scores = 2.0 * 2 * 64 * 128 * 128 / 2;
  CHECK(gemm_flops(block.backward) == 2 * (gemm_flops(block.forward) - scores) + 2.5 * scores);
}

TEST_CASE("workload: expert-parallel ranks exchange tokens x top_k x hidden, both ways in both passes") {
  BlockOptions options = tokens(128);
  options.expert_parallel = 4;
  const Block block = make_layer(mixture(), 1, options);
  constexpr std::int64_t kRows = 128 * 2;
  for (const char* name : {"dispatch.all_to_all", "combine.all_to_all"}) {
    CHECK(collective(block.forward, name).bytes.count() == kRows * 64 * 2);
    CHECK(collective(block.forward, name).over == Over::kExpert);
  }
  for (const char* name : {"combine.grad.all_to_all", "dispatch.grad.all_to_all"})
    CHECK(collective(block.backward, name).bytes.count() == kRows * 64 * 2);
  // Two experts here, with the choices that four ranks made for them.
  CHECK(*kernel(block.forward, "experts.up").gemm == plan::GemmShape{2, 128, 64, 64});
  CHECK(block.routed_parameters == 2 * 6'144);

  options.dispatch_dtype = plan::Dtype::kFp8;
  const Block fp8 = make_layer(mixture(), 1, options);
  CHECK(collective(fp8.forward, "dispatch.all_to_all").bytes.count() == kRows * 64);
  CHECK(collective(fp8.forward, "combine.all_to_all").bytes.count() == kRows * 64 * 2);
  CHECK(collective(fp8.backward, "combine.grad.all_to_all").bytes.count() == kRows * 64);
}

// Capacity ceil(1.25 * 128 * 2 / 8) = 40 rows of each expert and rank, sent full or not.
TEST_CASE("workload: a capacity pads experts to the same rows") {
  BlockOptions options = tokens(128);
  options.expert_parallel = 4;
  options.routing.capacity_factor = 1.25;
  const Block block = make_layer(mixture(), 1, options);
  CHECK(collective(block.forward, "dispatch.all_to_all").bytes.count() == 8 * 40 * 64 * 2);
  CHECK(*kernel(block.forward, "experts.up").gemm == plan::GemmShape{2, 160, 64, 64});
}

TEST_CASE("workload: expert tensor parallelism cuts widths and shares rows") {
  BlockOptions options = tokens(128);
  options.tensor_parallel = 2;
  options.sequence_parallel = true;
  options.expert_parallel = 2;
  options.expert_tensor_parallel = 2;
  const Block block = make_layer(mixture(), 1, options);
  // 64 tokens of this rank, 128 rows; both ranks' rows are gathered, and each runs half the width.
  CHECK(collective(block.forward, "dispatch.all_to_all").bytes.count() == 128 * 64 * 2);
  CHECK(collective(block.forward, "dispatch.gather").bytes.count() == 2 * 128 * 64 * 2);
  CHECK(collective(block.forward, "dispatch.gather").over == Over::kExpertTensor);
  CHECK(collective(block.forward, "combine.scatter").kind == plan::CollectiveKind::kReduceScatter);
  CHECK(*kernel(block.forward, "experts.up").gemm == plan::GemmShape{4, 64, 32, 64});
  CHECK(block.routed_parameters == 4 * 6'144 / 2);
}

TEST_CASE("workload: shared experts run beside the exchanges when asked to") {
  BlockOptions options = tokens(128);
  options.expert_parallel = 4;
  const Block after = make_layer(mixture(), 1, options);
  CHECK(find_step(after.forward, "shared.down") < find_step(after.forward, "dispatch.all_to_all"));
  options.overlap_shared_experts = true;
  const Block beside = make_layer(mixture(), 1, options);
  const std::size_t dispatch = find_step(beside.forward, "dispatch.all_to_all");
  CHECK(find_step(beside.forward, "shared.up") == dispatch + 1);
  CHECK(collective(beside.forward, "dispatch.all_to_all").overlap_steps == 2);  // up, activation
  CHECK(collective(beside.forward, "combine.all_to_all").overlap_steps == 1);   // down
  CHECK(gemm_flops(beside.forward) == gemm_flops(after.forward));
  CHECK(gemm_flops(beside.backward) == gemm_flops(after.backward));
}

// 128 tokens of 2 B. Kept of the experts' half: scores 128*8*4, choice 128*2*8, rows 256: input 64, up 64, down 32
// of 2 B and a probability of 4 B; shared: up 64 and down 32.
TEST_CASE("workload: what a layer with experts keeps") {
  const ModelShape shape = mixture();
  std::int64_t kept = 0;
  for (const SavedTensor& tensor : make_layer(shape, 1, tokens(128)).saved)
    if (tensor.name.starts_with("router") || tensor.name.starts_with("experts") || tensor.name.starts_with("shared"))
      kept += tensor.size.count();
  CHECK(kept == 128 * 8 * 4 + 128 * 2 * 8 + 256 * ((64 + 64 + 32) * 2 + 4) + 128 * (64 + 32) * 2);
}

TEST_CASE("workload: selective recomputation of norms, activations and latents") {
  ModelShape shape = mixture();
  shape.latent = LatentAttention{.q_rank = 24, .kv_rank = 16, .nope_dim = 8, .rope_dim = 4, .value_dim = 8};
  shape.head_dim = 12;
  BlockOptions options = tokens(128);
  const Block all = make_layer(shape, 1, options);
  options.recompute = Recompute::kSelective;
  CHECK(saved_bytes(make_layer(shape, 1, options)) == saved_bytes(all));  // flash keeps no scores
  options.recompute_parts = {.norms = true, .latents = true, .expert_activations = true};
  const Block some = make_layer(shape, 1, options);
  CHECK(saved_bytes(all) - saved_bytes(some) == some.recompute_peak.count());
  // Norm outputs 2 * 64; latents 24 + 16 and q, k (48 each), v (32); experts 2 * 32, shared 32: of 2 B a token.
  CHECK(some.recompute_peak.count() == 128 * 2 * (2 * 64 + 24 + 16 + 48 + 48 + 32 + 2 * 32 + 32));
  CHECK(find_step(some.recompute, "attention.q_up") < some.recompute.size());
  CHECK(find_step(some.recompute, "experts.activation") < some.recompute.size());
}

// Into latents 64 * (24 + 16 + 4), out of them 24 * 4 * 12 + 16 * 4 * (8 + 8), output 4 * 8 * 64, norms 24 + 16.
TEST_CASE("workload: latent attention by hand") {
  ModelShape shape = mixture();
  shape.experts.reset();
  shape.latent = LatentAttention{.q_rank = 24, .kv_rank = 16, .nope_dim = 8, .rope_dim = 4, .value_dim = 8};
  shape.head_dim = 12;
  constexpr std::int64_t kAttention = 64 * 44 + 24 * 48 + 16 * 64 + 32 * 64 + 40;
  CHECK(layer_parameters(shape, 0).total == kAttention + 128 + 24'576);
  const Block block = make_layer(shape, 0, tokens(128));
  CHECK(block.parameters == kAttention + 128 + 24'576);
  const plan::Kernel& core = kernel(block.forward, "attention.core");
  CHECK(core.attention->head_dim == 12);
  CHECK(core.attention->value_dim == 8);
  CHECK(core.flops.si() == 2.0 * (12 + 8) * 4 * 128 * 128 / 2);
  CHECK(kernel(block.backward, "attention.core.grad").flops.si() == 2.0 * (3 * 12 + 2 * 8) * 4 * 128 * 128 / 2);
  // Sequence-parallel ranks gather the narrow latents, not the hidden state.
  BlockOptions options = tokens(128);
  options.tensor_parallel = 2;
  options.sequence_parallel = true;
  const Block cut = make_layer(shape, 0, options);
  CHECK(collective(cut.forward, "attention.q.gather").bytes.count() == 128 * 24 * 2);
  CHECK(collective(cut.forward, "attention.kv.gather").bytes.count() == 128 * (16 + 4) * 2);
  CHECK(kernel(cut.forward, "attention.kv_down").gemm->m == 64);
}

TEST_CASE("workload: a ring passes keys and values on beside the attention") {
  const ModelShape shape = llama3_8b();
  BlockOptions options = tokens(8192);
  const double alone = kernel(make_layer(shape, 0, options).forward, "attention.core").flops.si();
  options.context_parallel = 4;
  constexpr std::int64_t kKeysValues = 2048 * 2 * 8 * 128 * 2;  // of this rank's tokens
  const auto of = [](const std::vector<Step>& steps, Over over) {
    std::int64_t bytes = 0;
    for (const BlockCollective& c : collectives(steps))
      if (c.over == over) bytes += c.bytes.count();
    return bytes;
  };
  const auto attention = [](const std::vector<Step>& steps) {
    double flops = 0;
    for (const Step& step : steps)
      if (const auto* op = std::get_if<Operator>(&step); op != nullptr && op->kernel.op == plan::OpClass::kAttention)
        flops += op->kernel.flops.si();
    return flops;
  };
  SUBCASE("zig-zag: a quarter of the work, three times the own part forward, six times backward") {
    const Block block = make_layer(shape, 0, options);
    CHECK(attention(block.forward) == alone / 4);
    CHECK(attention(block.backward) == 2.5 * alone / 4);
    CHECK(of(block.forward, Over::kContext) == 3 * kKeysValues);
    CHECK(of(block.backward, Over::kContext) == 6 * kKeysValues);
    CHECK(collective(block.forward, "attention.ring").overlap_steps == 1);
  }
  SUBCASE("plain: the last rank sees everything: 7/16 of the square instead of 2/16") {
    options.context_style = ContextStyle::kPlainRing;
    CHECK(attention(make_layer(shape, 0, options).forward) == alone * 7 / 16);
  }
  SUBCASE("all-gather: the whole sequence's keys and values, and their gradients scattered") {
    options.context_style = ContextStyle::kAllGather;
    const Block block = make_layer(shape, 0, options);
    CHECK(attention(block.forward) == alone / 4);
    CHECK(of(block.forward, Over::kContext) == 4 * kKeysValues);
    CHECK(of(block.backward, Over::kContext) == 2 * 4 * kKeysValues);
  }
  SUBCASE("ulysses: queries, keys, values there, outputs back") {
    options.context_style = ContextStyle::kUlysses;
    const Block block = make_layer(shape, 0, options);
    CHECK(attention(block.forward) == alone / 4);
    CHECK(of(block.forward, Over::kContext) == 2048 * (4096 + 2 * 1024 + 4096) * 2);
    CHECK(of(block.backward, Over::kContext) == of(block.forward, Over::kContext));
    CHECK(kernel(block.forward, "attention.core").attention->query_heads == 8);
    CHECK(kernel(block.forward, "attention.core").attention->query_length == 8192);
  }
  CHECK(make_layer(shape, 0, options).parameters == layer_parameters(shape, 0).total);
}

// Llama 4: three layers of four look within chunks of 8192 tokens. At 32768 that is four sequences side by side.
TEST_CASE("workload: chunked attention runs as shorter sequences") {
  ModelShape shape = llama3_8b();
  shape.sliding_window = 8192;
  shape.window_is_chunk = true;
  const plan::Kernel core = kernel(make_layer(shape, 0, tokens(32768)).forward, "attention.core");
  CHECK(core.attention->batch == 4);
  CHECK(core.attention->query_length == 8192);
  CHECK(core.flops.si() == 4 * kernel(make_layer(shape, 0, tokens(8192)).forward, "attention.core").flops.si());
}

TEST_CASE("workload: skewed routing loads one rank more than the others") {
  CHECK(busiest_rank_load(64, 8, {}) == 1.0);
  CHECK(busiest_rank_load(64, 8, {.capacity_factor = 1.0, .skew = 1.0}) == 1.0);
  CHECK(busiest_rank_load(64, 1, {.skew = 1.0}) == 1.0);
  // As many ranks as experts: the busiest has the most popular one, 1/H_8 of all, times 8.
  double harmonic = 0;
  for (int i = 1; i <= 8; ++i) harmonic += 1.0 / i;
  CHECK(busiest_rank_load(8, 8, {.skew = 1.0}) == doctest::Approx(8 / harmonic).epsilon(1e-12));
  double last = 1.0;
  for (const double skew : {0.1, 0.3, 0.6, 1.0}) {
    const double load = busiest_rank_load(256, 64, {.skew = skew, .seed = 3});
    CHECK(load > last);
    last = load;
  }
  CHECK(busiest_rank_load(256, 64, {.skew = 0.5, .seed = 1}) != busiest_rank_load(256, 64, {.skew = 0.5, .seed = 2}));
  const RoutedRows rows = routed_rows(100, 8, 2, 8, {.skew = 1.0});
  CHECK(rows.sent == 200);
  CHECK(rows.received == std::llround(200 * 8 / harmonic));
  CHECK(routed_rows(100, 8, 2, 8, {.skew = 9.0}).received == 800);  // every token once
}

// DeepSeek-V3's published count: 11.5 B of the prediction module beside the 671 B (its README), 14 B with the shared
// embedding and head of 0.9 B each.
TEST_CASE("workload: a further token's prediction is a layer, a projection and the head again") {
  ModelShape shape = mixture();
  const std::int64_t without = count_parameters(shape).total;
  shape.predicted_ahead = 1;
  const std::int64_t extra = layer_parameters(shape, 1).total + 2 * 64 * 64 + 3 * 64;
  CHECK(count_parameters(shape).total == without + extra);
  const Block block = make_predictor(shape, tokens(128));
  CHECK(block.parameters == extra);
  CHECK(find_step(block.forward, "projection") < find_step(block.forward, "experts.up"));
  CHECK(find_step(block.forward, "experts.up") < find_step(block.forward, "head.logits"));
}

// 8 ranks on 4 hosts of 2, 256 rows of 2 x 64 bytes: a token's two experts lie on 4 (1 - (3/4)^2) = 1.75 hosts in the mean, so that 1.75 / 2 of
// the rows cross, and all go on inside. Both ways, and twice, forward and backward.
TEST_CASE("workload: in two levels a token crosses to each host once") {
  BlockOptions options = tokens(128);
  options.expert_parallel = 8;
  const auto bytes = [&](const char* name) { return collective(make_layer(mixture(), 1, options).forward, name).bytes.count(); };
  CHECK(bytes("dispatch.all_to_all") == 256 * 128);
  options.experts_within = 2;
  for (const char* way : {"dispatch", "combine"}) {
    CHECK(bytes((std::string{way} + ".across").c_str()) == 256 * 128 * 7 / 8);
    CHECK(bytes((std::string{way} + ".within").c_str()) == 256 * 128);
  }
  options.experts_within = 8;  // one host: nothing crosses
  const Block one = make_layer(mixture(), 1, options);
  CHECK(find_step(one.forward, "dispatch.across") == one.forward.size());
  CHECK(collective(one.forward, "dispatch.within").bytes.count() == 256 * 128);
  options.experts_within = 1;  // one GPU a host: nothing goes on
  const Block apart = make_layer(mixture(), 1, options);
  CHECK(find_step(apart.forward, "dispatch.within") == apart.forward.size());
}

TEST_SUITE_END();
