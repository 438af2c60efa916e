// Rows of published runs say how they ran in their names, notes and frameworks.
#include <doctest/doctest.h>

#include "calibration/truth_megatron.hpp"
#include "calibration/truth_memory_words.hpp"

using namespace stepcast::calibration;

TEST_SUITE_BEGIN("unit");

TEST_CASE("truth rows: a functional test of Megatron-Core says how it ran") {
  const auto test = megatron_test({.model = "gpt:gpt3_mcore_te_tp1_pp4_untie_embeddings_and_outputs",
                                   .notes = "flags: deterministic-mode, attention-backend=unfused, transformer-impl=transformer_engine, "
                                            "no-gradient-accumulation-fusion",
                                   .gpu = "A100-SXM",
                                   .hidden = 512});
  REQUIRE(test);
  CHECK(test->refusal.empty());
  CHECK(test->unfused_attention);
  CHECK_FALSE(test->fused_accumulation);
  CHECK_FALSE(test->tied);
  CHECK(test->bias);
  CHECK(test->dropout == 0.1);
  CHECK(test->library_workspace == "68 MiB");  // two handles of 32 MiB, 4 MiB of Transformer Engine before Hopper
  CHECK_FALSE(megatron_test({.model = "gpt3", .notes = "CE fusion on", .gpu = "B200", .hidden = 8192}));
}

// 4 sequences of 1024 and 8 heads: scores of 32 Mi elements, 2 B each, kept by local layers.
TEST_CASE("truth rows: what follows from ranks, implementation and kind") {
  const auto local = megatron_test({.model = "gpt:gpt3_mcore_tp1_pp2", .notes = "flags: deterministic-mode, transformer-impl=local",
                                    .gpu = "H100-SXM", .hidden = 512, .scores = std::int64_t{4} * 8 * 1024 * 1024});
  CHECK(local->unfused_attention);
  CHECK(local->library_workspace == "128 MiB");
  const auto ring = megatron_test({.model = "gpt:x_cp2", .notes = "flags: attention-backend=flash", .gpu = "H100-SXM", .hidden = 512,
                                   .context_parallel = true});
  CHECK(ring->dropout == 0.0);
  CHECK(ring->library_workspace == "96 MiB");
  const auto release = megatron_test({.model = "gpt:gpt3_15b_8t_release", .notes = "flags: transformer-impl=transformer_engine",
                                      .gpu = "A100-SXM", .hidden = 6144});
  CHECK(release->vocab == 256000);
  CHECK_FALSE(release->bias);
  CHECK(release->rotary);
  CHECK_FALSE(megatron_test({.model = "t5:t5_release_sm", .notes = "flags: lpn", .gpu = "H100-SXM", .hidden = 768})->refusal.empty());
}

TEST_CASE("truth rows: what frameworks hold in memory") {
  const MemoryWords deepspeed = memory_words({.framework = "Megatron-DeepSpeed", .gpu = "A100-SXM", .fp32_gradients = false});
  CHECK(deepspeed.training == ", engine: deepspeed");
  CHECK(deepspeed.parallel == ", bucket: 1000000000 B");
  CHECK(deepspeed.memory == ", logit_copies: 1, context: 1343 MiB");
  const MemoryWords core = memory_words({.framework = "Megatron-Core main (dev)", .gpu = "H100-SXM", .library_workspace = "96 MiB"});
  CHECK(core.training.empty());
  CHECK(core.memory == ", logit_copies: 0, library_workspace: 96 MiB");
  const MemoryWords titan = memory_words({.framework = "torchtitan FSDP2", .gpu = "H100-SXM", .pipeline = true});
  CHECK(titan.memory == ", logit_copies: 1, expandable_segments: true");
  CHECK(titan.parallel == ", zero3_reshard_after_forward: false");
  CHECK(titan.training == ", engine: torch");
  CHECK(memory_words({.framework = "PyTorch-Lightning DDP (AMP)"}).training == ", engine: ddp");
  CHECK(memory_words({.framework = "Megatron-DeepSpeed", .notes = "bitsandbytes 8-bit Adam"}).training ==
        ", optimizer: adam-8bit, engine: deepspeed");
}

TEST_SUITE_END();
