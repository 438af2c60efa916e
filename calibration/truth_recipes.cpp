#include "calibration/truth_recipes.hpp"

namespace stepcast::calibration {
namespace {

bool before_hopper(std::string_view gpu) {
  return gpu.starts_with("V100") || gpu.starts_with("A100") || gpu.starts_with("Ampere");
}

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// llm-foundry, scripts/train/benchmarking: submit_benchmarks.py takes attn_impl triton, a flash-1 kernel, unless told otherwise;
// the sweep of 128 H100 and more (sweep.py) names flash, by then flash-2.
std::string foundry_attention(const RecipeQuery& q) {
  return q.gpu.starts_with("H100") && q.gpus >= 128 ? "flash-2" : "flash-1";
}

// Fused attention came to Megatron-LM in 2023 and needs an Ampere GPU; tables without a version are older but on Hopper.
std::string megatron_attention(const RecipeQuery& q) { return before_hopper(q.gpu) ? "unfused" : "flash"; }

// dgxc-benchmarking up to v25.02: configure.sh of nemo_megatron (GPT-3), nemotron 340B and grok1 set NVTE_FUSED_ATTN=0, which
// leaves flash-attention 2; those of llama3.1 and nemotron 15B set it to 1.
std::string dgxc_attention(const RecipeQuery& q) {
  const bool old = has(q.source_loc, "@v24.") || has(q.source_loc, "@v25.02");
  const bool unfused = q.model.starts_with("GPT3") || q.model.starts_with("Grok") || q.model.starts_with("Nemotron4-340B");
  return old && unfused ? "flash-2" : "";
}

// Megatron-Bridge, scripts/performance/configs/deepseek and qwen: moe_flex_dispatcher_backend of presets whose experts lie on several
// hosts: deepep for DeepSeek-V3 on B200 in MXFP8, hybridep for it on H100 and for Qwen3-30B; Qwen3-235B and Qwen3-Next name alltoall on H100.
bool dispatches_by_host(const RecipeQuery& q) {
  return q.framework.starts_with("Megatron-Bridge") && (q.model.starts_with("DeepSeek-V3") || q.model.starts_with("Qwen3-30B"));
}

}  // namespace

Recipe recipe_of(const RecipeQuery& q) {
  Recipe recipe;
  // Megatron-LM and NeMo: make_vocab_size_divisible_by 128.
  recipe.pads_vocabulary = q.framework.starts_with("Megatron") || q.framework.starts_with("NeMo") || q.framework.starts_with("MegaScale");
  // vTrain's single-node runs without tensor parallelism: the head takes 2.8 times as long as with it, GPU for GPU, and the excess grows
  // with the hidden size: products over the vocabulary as stated, 50257, which is odd (docs/accuracy.md).
  if (q.source == "VIA-Research/vTrain" && q.tensor_parallel == 1) {
    recipe.pads_vocabulary = false;
    recipe.whole_vocabulary = true;
  }
  if (q.framework.starts_with("Composer")) recipe.attention = foundry_attention(q);
  if (q.framework == "Megatron-LM" || q.framework == "Megatron") recipe.attention = megatron_attention(q);
  if (q.framework == "NeMo/Megatron") recipe.attention = dgxc_attention(q);
  // NeMo-Framework-Launcher 23.08, gpt3/175b.yaml: activations_checkpoint_granularity selective beside sequence_parallel; 5b.yaml: null.
  if (q.framework == "NeMo Framework" && q.sequence_parallel) recipe.recompute = "selective (attention core)";
  // dgxc-benchmarking, maxtext/configure.sh: remat_policy save_qkv_proj. All is computed again but those three products.
  if (q.framework.starts_with("MaxText")) recipe.recompute = "full";
  // Megatron-Bridge's presets for mixtures (scripts/performance): expert_tensor_parallel_size 1.
  if (q.framework.starts_with("Megatron-Bridge")) recipe.expert_tp = 1;
  // DeepSpeed's ZeRO-3 fetches ahead as many elements as stage3_prefetch_bucket_size: 5e7 (runtime/zero/config.py), or 0.9 hidden^2 where it is
  // "auto" (transformers integrations/deepspeed.py): less than one matrix of the models in the tables.
  recipe.gathers_on_use = has(q.framework, "DeepSpeed") || has(q.framework, "Deepspeed");
  recipe.dispatches_by_host = dispatches_by_host(q);
  // DeepSpeed 0.6.2 on PyTorch 1.10.2 (the page's table 1): reduce_scatter_coalesced (runtime/comm/coalesced_collectives.py, early 2022) concatenates each
  // rank's pieces by a kernel of its own, and torch.distributed.reduce_scatter copies each into one buffer: two kernels a
  // rank. Megatron-DeepSpeed, examples/azure/run-1t.sh: reduce_bucket_size 9e7.
  if (has(q.source, "Azure Megatron-DeepSpeed")) {
    recipe.copies_per_shard = 2;
    recipe.bucket_elements = 90'000'000;
  }
  // DeepSpeed until v0.5.9, runtime/zero: _allgather_param synchronises the device, then gathers into a list, as _reduce_scatter_gradient reduces each
  // parameter from one (partition_parameters.py); runs of 2021.
  if (recipe.gathers_on_use && q.zero == 3 && (has(q.source, "2104.04473") || has(q.source, "bigscience"))) {
    recipe.copies_per_shard = recipe.copies_per_gathered_shard = 1;
    recipe.bucket_elements = 1;
    recipe.gathers_wait = true;
  }
  // bigscience, experiments/gpt2.md: transformers' own GPT-2, by its Trainer.
  if (q.framework.starts_with("HF ")) recipe.modules = "transformers";
  // ColossalAI-Pytorch-lightning, benchmark/gpt/model.py: transformers.GPT2LMHeadModel under all three strategies.
  if (q.source == "hpcaitech/ColossalAI-Pytorch-lightning") recipe.modules = "transformers";
  // bigscience, tr11-176B-ml: CUDA_LAUNCH_BLOCKING=1, for without it large models always hung on more than 160 GPUs (chronicles-prequel.md, "dealing with JZ
  // hanging" and "Hanging Issue"; tr11-176B-ml.slurm).
  recipe.launches_block = has(q.source_loc, "tr11-176B-ml") && q.gpus > 160;
  // SimuMax publishes the kernels of its machine beside the runs: a fifth slower than others' B200.
  if (q.source == "MooreThreads/SimuMax" && q.gpu == "B200") recipe.machine = "b200-simumax";
  return recipe;
}

}  // namespace stepcast::calibration
