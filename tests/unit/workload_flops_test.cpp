#include <doctest/doctest.h>

#include "tests/support/workload_shapes.hpp"

using namespace stepcast;
using namespace stepcast::workload;
using namespace stepcast::test;

TEST_SUITE_BEGIN("unit");

namespace {

double closed_form(double layers, double s, double h, double vocab) {
  return 72 * layers * s * h * h * (1 + s / (6 * h) + vocab / (12 * layers * h));
}

double step_flops(const ModelShape& shape, const BlockOptions& options) {
  const Block layer = make_layer(shape, 0, options);
  const Block head = make_head(shape, options, true);
  return static_cast<double>(shape.layers) *
             (gemm_flops(layer.forward) + gemm_flops(layer.backward)) +
         gemm_flops(head.forward) + gemm_flops(head.backward);
}

}  // namespace

// GPT-3 175B: 96 layers, h 12288, s 2048, V 51200. Per sequence
//   72 * 96 * 2048 * 12288^2 = 2.13745e15; s/6h = 0.0277778; V/(12 l h) = 0.00361690
//   => 2.13745e15 * 1.0313947 = 2.20456e15 FLOP.
TEST_CASE("workload: Megatron's closed form, worked for GPT-3 175B") {
  const ModelShape shape = gpt_shape(96, 12288, 96);
  const double flops = model_flops_per_sequence(shape, 2048, FlopsConvention::kMegatron).si();
  CHECK(flops == doctest::Approx(2.20456e15).epsilon(1e-5));
  CHECK(flops == doctest::Approx(closed_form(96, 2048, 12288, 51200)).epsilon(1e-12));
}

TEST_CASE("workload: the operators' GEMMs add up to Megatron's closed form") {
  const ModelShape shape = gpt_shape(96, 12288, 96);
  BlockOptions options;
  options.sequence = 2048;
  options.attention = AttentionKernel::kUnfused;
  CHECK(step_flops(shape, options) ==
        doctest::Approx(closed_form(96, 2048, 12288, 51200)).epsilon(1e-12));
  // With full recomputation the layers' forward pass runs twice: 96 in place of 72 (Narayanan et
  // al. 2021, eq. 3), but for the logits: 96 B s l h^2 (1 + s/6h + V/(16 l h)).
  options.recompute = Recompute::kFull;
  const double again = 96 * gemm_flops(make_layer(shape, 0, options).recompute);
  const double narayanan = 96.0 * 96 * 2048 * 12288.0 * 12288.0 *
                           (1 + 2048 / (6 * 12288.0) + 51200 / (16.0 * 96 * 12288));
  CHECK(step_flops(shape, options) + again == doctest::Approx(narayanan).epsilon(1e-12));
}

// Causal halving: the score work of forward and backward, 12 l s^2 h, becomes 6 l s^2 h; flash
// attention's backward pass runs five products where the model counts four: 0.5 * (2 + 5) * 2.
TEST_CASE("workload: flash attention executes half the square and recomputes scores") {
  const ModelShape shape = gpt_shape(2, 1024, 16);
  BlockOptions options;
  options.sequence = 4096;
  const double s = 4096, h = 1024;
  const double full = model_flops_per_sequence(shape, 4096, FlopsConvention::kMegatron).si();
  const double half = model_flops_per_sequence(shape, 4096, FlopsConvention::kLlama).si();
  CHECK(full - half == doctest::Approx(2 * 6 * s * s * h));
  const double executed = step_flops(shape, options);
  CHECK(executed - half ==
        doctest::Approx(2 * s * s * h));  // one product of 2 h s^2 / 2, two layers
}

// PaLM 540B (Chowdhery et al. 2022, table 1 and appendix B) is not dense-GPT shaped; the formula is
// worked on Llama-3-8B instead. N = 8'030'261'248 - 128256 * 4096 = 7'504'924'672 (less the lookup
// table); per token at s = 8192: 6 N + 12 * 32 * 4096 * 8192 = 4.50295e10 + 1.28849e10.
TEST_CASE("workload: PaLM's convention, worked for Llama-3-8B") {
  const double expected = 8192.0 * (6.0 * 7'504'924'672.0 + 12.0 * 32 * 4096 * 8192);
  CHECK(model_flops_per_sequence(llama3_8b(), 8192, FlopsConvention::kPalm).si() ==
        doctest::Approx(expected).epsilon(1e-12));
}

// Llama-3-8B per layer and token: Q, O 4096^2 each, K, V 4096 * 1024 each, MLP 3 * 4096 * 14336
// = 218'103'808 weights; logits 128256 * 4096; forward 2 FLOPs a weight, backward 4.
TEST_CASE("workload: Megatron's convention with grouped queries and a gated MLP") {
  const double weights = 32 * 218'103'808.0 + 128256.0 * 4096;
  const double scores = 12.0 * 32 * 4096 * 8192;
  CHECK(model_flops_per_sequence(llama3_8b(), 8192, FlopsConvention::kMegatron).si() ==
        doctest::Approx(8192 * (6 * weights + scores)).epsilon(1e-12));
}

// A window of w keys: s w - w^2 / 2 pairs. s = 8192, w = 4096: 33'554'432 - 8'388'608 = 25'165'824,
// three quarters of s^2 / 2.
TEST_CASE("workload: a sliding window shrinks the attention kernel, on sliding layers only") {
  ModelShape shape = llama3_8b();
  shape.sliding_window = 4096;
  shape.layer_is_sliding.assign(32, false);
  shape.layer_is_sliding[0] = true;
  BlockOptions options;
  options.sequence = 8192;
  const auto attention = [&](std::int64_t layer) {
    const Block block = make_layer(shape, layer, options);
    return std::get<Operator>(block.forward[find_step(block.forward, "attention.core")]).kernel;
  };
  CHECK(attention(0).flops.si() == doctest::Approx(4.0 * 4096 * 25'165'824.0));
  CHECK(attention(0).attention->window == 4096);
  CHECK(attention(1).flops.si() == doctest::Approx(4.0 * 4096 * 8192 * 8192 / 2));
  CHECK_FALSE(attention(1).attention->window.has_value());
}

TEST_SUITE_END();
