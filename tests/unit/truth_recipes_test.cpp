// What published launch scripts set, by framework, model and version.
#include <doctest/doctest.h>

#include "calibration/truth_recipes.hpp"

using namespace stepcast::calibration;

TEST_SUITE_BEGIN("unit");

TEST_CASE("truth rows: the attention kernel that a script left") {
  const auto attention = [](const RecipeQuery& query) { return recipe_of(query).attention; };
  CHECK(attention({.framework = "Composer/PyTorch FSDP", .gpu = "H100-SXM", .gpus = 8}) == "flash-1");
  CHECK(attention({.framework = "Composer/PyTorch FSDP", .gpu = "H100-SXM", .gpus = 128}) == "flash-2");
  CHECK(attention({.framework = "Composer/PyTorch FSDP", .gpu = "A100-SXM", .gpus = 512}) == "flash-1");
  CHECK(attention({.framework = "Megatron", .gpu = "V100-SXM2"}) == "unfused");
  CHECK(attention({.framework = "Megatron-LM", .gpu = "H100-SXM"}) == "flash");
  // The framework's habit where the version is later or the script names the fused kernels.
  CHECK(attention({.framework = "NeMo/Megatron", .model = "Grok-1-314B", .source_loc = "grok1/README_314b.md@v25.02.02 line 64"}) == "flash-2");
  CHECK(attention({.framework = "NeMo/Megatron", .model = "Grok-1-314B", .source_loc = "grok1/README.md@v25.05.05 line 98"}).empty());
  CHECK(attention({.framework = "NeMo/Megatron", .model = "Nemotron4-15B", .source_loc = "nemotron/README_15b.md@v24.11.1 line 54"}).empty());
}

TEST_CASE("truth rows: recomputation, experts, vocabularies and machines of recipes") {
  CHECK(recipe_of({.framework = "MaxText (JAX)"}).recompute == "full");
  CHECK(recipe_of({.framework = "NeMo Framework", .sequence_parallel = true}).recompute == "selective (attention core)");
  CHECK(recipe_of({.framework = "NeMo Framework"}).recompute.empty());
  CHECK(recipe_of({.framework = "Megatron-Bridge 26.04"}).expert_tp == 1);
  CHECK_FALSE(recipe_of({.framework = "torchtitan FSDP2"}).expert_tp);
  CHECK(recipe_of({.framework = "Megatron-DeepSpeed"}).pads_vocabulary);
  CHECK_FALSE(recipe_of({.framework = "Composer/PyTorch FSDP"}).pads_vocabulary);
  CHECK(recipe_of({.framework = "Megatron-LM@23e00ed0 TE2.11", .gpu = "B200", .source = "MooreThreads/SimuMax"}).machine == "b200-simumax");
  CHECK(recipe_of({.framework = "Megatron-Bridge 26.04", .gpu = "B200", .source = "NVIDIA-NeMo/Megatron-Bridge"}).machine.empty());
}

TEST_CASE("truth rows: how recipes dispatch tokens to experts on several hosts") {
  CHECK(recipe_of({.framework = "Megatron-Bridge 26.04.01", .model = "DeepSeek-V3", .gpu = "B200"}).dispatches_by_host);
  CHECK(recipe_of({.framework = "Megatron-Bridge 26.06", .model = "Qwen3-30B-A3B", .gpu = "H100-SXM"}).dispatches_by_host);
  CHECK_FALSE(recipe_of({.framework = "Megatron-Bridge 26.02.01", .model = "Qwen3-235B-A22B", .gpu = "H100-SXM"}).dispatches_by_host);
  CHECK_FALSE(recipe_of({.framework = "torchtitan", .model = "DeepSeek-V3"}).dispatches_by_host);
}

TEST_CASE("truth rows: launches block where bigscience's A100 runs would hang") {
  const char* page = "train/tr11-176B-ml/chronicles-prequel.md@9e64edec2a line 609 [48 node contenders]";
  CHECK(recipe_of({.framework = "Megatron-DeepSpeed", .source_loc = page, .gpus = 384}).launches_block);
  CHECK_FALSE(recipe_of({.framework = "Megatron-DeepSpeed", .source_loc = page, .gpus = 80}).launches_block);
  CHECK_FALSE(recipe_of({.framework = "Megatron-DeepSpeed", .source_loc = "train/tr8-104B-wide/chronicles.md", .gpus = 512}).launches_block);
}

TEST_CASE("truth rows: DeepSpeed gathers a matrix when its module runs") {
  for (const char* framework : {"DeepSpeed ZeRO-3 + Megatron", "HF + Deepspeed Zero 3 + Full Offload", "LLaMA-Factory + DeepSpeed, liger kernel, flash-attn 2"})
    CHECK(recipe_of({.framework = framework}).gathers_on_use);
  CHECK_FALSE(recipe_of({.framework = "torchtitan FSDP2"}).gathers_on_use);
  const Recipe azure = recipe_of({.framework = "DeepSpeed ZeRO-3 + Megatron", .source = "DeepSpeed blog 2022-07-26 Azure Megatron-DeepSpeed"});
  CHECK(azure.copies_per_shard == 2);
  CHECK(azure.bucket_elements == 90'000'000);
  const Recipe early = recipe_of({.framework = "DeepSpeed ZeRO-3", .source = "Narayanan et al. SC21 Table 2 (2104.04473)", .zero = 3});
  CHECK(early.gathers_wait);
  CHECK(early.copies_per_gathered_shard == 1);
  const Recipe sharded_states = recipe_of({.framework = "Megatron-DeepSpeed", .source = "bigscience-workshop/bigscience", .zero = 1});
  CHECK_FALSE(sharded_states.gathers_wait);
  CHECK(sharded_states.bucket_elements == 500'000'000);
  CHECK_FALSE(recipe_of({.framework = "Megatron-LM", .source = "Narayanan et al. SC21 Table 2 (2104.04473)"}).gathers_wait);
  CHECK(recipe_of({.framework = "DeepSpeed ZeRO-3 + Megatron", .source = "deepspeedai/DeepSpeed issue #1776"}).copies_per_shard == 0);
}

TEST_CASE("truth rows: whose layers run under a strategy of another") {
  CHECK(recipe_of({.framework = "ColossalAI Gemini (cuda)", .source = "hpcaitech/ColossalAI-Pytorch-lightning"}).modules == "transformers");
  CHECK(recipe_of({.framework = "HF + Deepspeed Zero 3 + Full Offload"}).modules == "transformers");
  CHECK(recipe_of({.framework = "DeepSpeed ZeRO-3 + Megatron"}).modules.empty());
}

TEST_SUITE_END();
