// A vision encoder in front of the decoder: parameters, work, and where they lie.
#include <doctest/doctest.h>

#include "models/parallel/planner.hpp"
#include "models/parallel/stage_model.hpp"
#include "models/workload/hf_config.hpp"
#include "sim/plan/check.hpp"
#include "tests/support/plan_sums.hpp"
#include "tests/support/workload_shapes.hpp"

using namespace stepcast;
using namespace stepcast::parallel;
using namespace stepcast::test;
using plan::Category;
using workload::VisionTower;

TEST_SUITE_BEGIN("unit");

namespace {

// Qwen3-VL-8B in the keys of its config.json.
const char* const kQwen = R"({"model_type": "qwen3_vl", "tie_word_embeddings": false,
  "text_config": {"model_type": "qwen3_vl_text", "hidden_size": 4096, "intermediate_size": 12288, "num_attention_heads": 32,
                  "num_key_value_heads": 8, "head_dim": 128, "num_hidden_layers": 36, "vocab_size": 151936},
  "vision_config": {"model_type": "qwen3_vl", "depth": 27, "hidden_size": 1152, "num_heads": 16, "intermediate_size": 4304, "patch_size": 16,
                    "temporal_patch_size": 2, "in_channels": 3, "spatial_merge_size": 2, "num_position_embeddings": 2304,
                    "out_hidden_size": 4096, "deepstack_visual_indexes": [8, 16, 24]}})";

constexpr std::int64_t kWidth = 1152;
constexpr std::int64_t kLayer = 4 * kWidth * kWidth + 4 * kWidth + 2 * kWidth * 4304 + 4304 + kWidth + 4 * kWidth;
constexpr std::int64_t kPatches = 3 * 2 * 16 * 16 * kWidth + kWidth + 2304 * kWidth;
constexpr std::int64_t kProjector = 4608 * 4608 + 4608 + 4608 * 4096 + 4096;

// A small decoder with two images of 64 patches, 16 tokens each.
workload::ModelShape shape_with_images() {
  workload::ModelShape shape = llama3_8b();
  shape.layers = 4;
  shape.hidden = 512;
  shape.heads = 8;
  shape.kv_heads = 8;
  shape.head_dim = 64;
  shape.ffn = 1024;
  shape.vocab = 4096;
  shape.vision = VisionTower{.layers = 3, .hidden = 256, .heads = 4, .ffn = 512, .patch = 14, .patch_values = 588, .positions = 64, .merged = 4,
                             .projector = {1024, 512}, .projector_bias = true, .projector_norm = true, .images = 2, .image_size = 112};
  return shape;
}

Strategy base() {
  Strategy s;
  s.sequence = 256;
  s.global_batch = 4;
  return s;
}

}  // namespace

// Published: 0.576 B for the vision part.
TEST_CASE("vision: the parameters of Qwen3-VL's encoder") {
  const workload::ModelShape shape = workload::read_hf_config(kQwen, "config.json");
  REQUIRE(shape.vision);
  const std::int64_t expected = kPatches + 27 * kLayer + (kProjector + 2 * kWidth) + 3 * (kProjector + 2 * 4608);
  CHECK(workload::vision_parameters(*shape.vision) == expected);
  CHECK(expected == 576'388'336);
}

TEST_CASE("vision: a stage's blocks hold them, and train them") {
  const workload::ModelShape shape = shape_with_images();
  CHECK(shape.vision->tokens() == 16);
  const workload::ParameterCount count = count_parameters(shape);
  const plan::Plan plan = make_plan(shape, base());
  CHECK(plan::check(plan).empty());
  CHECK(holdings(plan.programs[0]).end_of(Category::kParameters) == 2 * count.total);
  CHECK(count.vision == workload::vision_parameters(*shape.vision));

  // The first stage of a pipeline has all of it.
  Strategy s = base();
  s.pp = 2;
  s.tp = 2;
  s.sequence_parallel = true;
  const ModelBlocks blocks = make_blocks(shape, s);
  const auto stages = split_stages(blocks, s);
  CHECK(stages[0].blocks.size() == 5 + 1 + 2);
  CHECK(stages[1].blocks.size() == 2 + 1);
  for (const int zero : {0, 1, 3}) {
    s.dp = 2;
    s.zero = zero;
    const auto faults = plan::check(make_plan(shape, s));
    if (!faults.empty()) FAIL_CHECK(to_text(faults.front()));
  }
}

// Forward products of a micro-batch: R c h of the patches, R (4 h^2 + 2 h f) a layer, scores of the full square both ways,
// and the projector on a quarter of the rows.
TEST_CASE("vision: the encoder's work") {
  const workload::ModelShape shape = shape_with_images();
  workload::BlockOptions options;
  options.sequence = 256;
  const workload::VisionBlocks blocks = make_vision(*shape.vision, options);
  const double rows = 2 * 64;
  CHECK(gemm_flops(blocks.patches.forward) == 2 * rows * 588 * 256);
  CHECK(gemm_flops(blocks.layer.forward) == 2 * rows * (4 * 256 * 256 + 2 * 256 * 512) + 4.0 * 256 * 2 * 64 * 64);
  CHECK(gemm_flops(blocks.projector.forward) == 2 * rows / 4 * (1024 * 1024 + 1024 * 512));
  CHECK(gemm_flops(blocks.projector.backward) == 2 * gemm_flops(blocks.projector.forward));
  CHECK(gemm_flops(blocks.patches.backward) == gemm_flops(blocks.patches.forward));  // pixels need no gradient
  CHECK(workload::vision_flops(*shape.vision) ==
        3 * (gemm_flops(blocks.patches.forward) + 3 * gemm_flops(blocks.layer.forward) + gemm_flops(blocks.projector.forward)));
  workload::ModelShape text = shape;
  text.vision.reset();
  CHECK(model_flops_per_sequence(shape, 256, workload::FlopsConvention::kMegatron).si() -
            model_flops_per_sequence(text, 256, workload::FlopsConvention::kMegatron).si() ==
        doctest::Approx(workload::vision_flops(*shape.vision)));
}

TEST_CASE("vision: what is refused") {
  const auto problem = [](const workload::ModelShape& shape, const Strategy& s) {
    const auto errors = check(shape, s);
    return errors.empty() ? std::string{} : errors.front().path + ": " + errors.front().problem;
  };
  workload::ModelShape shape = shape_with_images();
  Strategy s = base();
  CHECK(problem(shape, s).empty());
  s.cp = 2;
  CHECK(problem(shape, s) == "model.images: images over context-parallel ranks are not modelled");
  s = base();
  shape.vision->images = 17;
  CHECK(problem(shape, s) == "model.images: 17 images of 16 tokens are more than a sequence");
  shape.vision->images = 1;
  shape.vision->image_size = 100;
  CHECK(problem(shape, s) == "model.image_size: 100 pixels do not make whole patches of 14, 4 of them a token");
}

TEST_SUITE_END();
