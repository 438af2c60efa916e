// accelerate's configuration (accelerate config, --config_file). Source of the keys: Hugging Face accelerate, FSDP,
// DeepSpeed and parallelism_config plug-ins, versions 0.34 to 1.12.
#include <array>
#include <filesystem>

#include "app/importers/training/training_import.hpp"
#include "sim/base/plain_text.hpp"

namespace stepcast::app {
namespace {

void mixed_precision(const SourceKey& key, TrainingImport& out) {
  out.set(key, "training.precision", one_of_words(key, {{"no", "fp32"}, {"false", "fp32"}, {"fp16", "fp16"}, {"bf16", "bf16"}, {"fp8", "fp8"}}));
}

void distributed_type(const SourceKey& key, TrainingImport& out) {
  const std::string kind = one_of_words(key, {{"FSDP", "3"}, {"DEEPSPEED", "deepspeed"}, {"MULTI_GPU", "0"}, {"NO", "0"}, {"MEGATRON_LM", "megatron"}});
  if (kind == "deepspeed" || kind == "megatron") return out.understood(key, kind);
  out.set(key, "parallel.zero", kind);
}

// What is sharded, and whether layers stay gathered between the passes.
void sharding(const SourceKey& key, TrainingImport& out) {
  const std::string kind = one_of_words(key, {{"FULL_SHARD", "full"}, {"1", "full"}, {"SHARD_GRAD_OP", "keep"}, {"2", "keep"}, {"NO_SHARD", "none"}, {"3", "none"},
                                              {"HYBRID_SHARD", "hybrid"}, {"4", "hybrid"}, {"HYBRID_SHARD_ZERO2", "hybrid-keep"}, {"_HYBRID_SHARD_ZERO2", "hybrid-keep"}, {"5", "hybrid-keep"}});
  if (kind == "none") return out.set(key, "parallel.zero", "0");
  out.set(key, "parallel.zero", "3");
  if (kind.ends_with("keep")) out.settings["parallel.zero3_reshard_after_forward"] = {"false", key.name, false};
  if (kind.starts_with("hybrid")) {
    out.settings["parallel.shard_group"] = {"8", key.name + ": shards within a node", true};
    out.remarks.emplace_back("hybrid sharding spreads shards over a node: parallel.shard_group is 8, unless --set says otherwise");
  }
}

void reshard(const SourceKey& key, TrainingImport& out) {
  if (key.value.find("SHARD") != std::string::npos) return sharding(key, out);  // version 1 files name the strategy here
  out.set(key, "parallel.zero3_reshard_after_forward", flag(key) ? "true" : "false");
}

void only_off(const SourceKey& key, TrainingImport& out) {
  if (flag(key)) {
    out.not_expressed(key, "set memory.offload by hand (docs/guide/offload.md)");
  } else {
    out.understood(key, "off");
  }
}

void offload_device(const SourceKey& key, TrainingImport& out) {
  if (one_of_words(key, {{"none", "no"}, {"null", "no"}, {"cpu", "yes"}, {"nvme", "yes"}}) == "no") {
    out.understood(key, "no offload");
  } else {
    out.not_expressed(key, "set memory.offload by hand (docs/guide/offload.md); NVMe is not modelled");
  }
}

// DeepSpeed's own file beside this one; its keys are shown as they stand there.
void deepspeed_file(const SourceKey& key, TrainingImport& out) {
  std::filesystem::path path = key.value;
  if (path.is_relative()) path = std::filesystem::path{key.at.file}.parent_path() / path;
  std::error_code none;
  if (!std::filesystem::exists(path, none)) return out.not_expressed(key, "no such file beside this one: its keys are missing");
  out.understood(key, "read as well");
  const std::string file = path.string();
  apply_keys(kDeepSpeed, kDeepSpeed.read(read_text_file(file, "a configuration of DeepSpeed"), file), out);
}

void accumulation(const SourceKey& key, TrainingImport& out) {
  out.accumulation = whole_number(key);
  out.understood(key, "micro-batches of a step");
}

constexpr std::array kHandlers{
    KeyHandler{"distributed_type", distributed_type},
    KeyHandler{"mixed_precision", mixed_precision},
    KeyHandler{"num_machines", [](const SourceKey& k, TrainingImport& o) { o.set_whole(k, "cluster.nodes"); }},
    KeyHandler{"num_processes", [](const SourceKey& k, TrainingImport& o) {
                 o.world = whole_number(k);
                 o.understood(k, "GPUs");
               }},
    KeyHandler{"gradient_accumulation_steps", accumulation},
    KeyHandler{"fsdp_config.fsdp_sharding_strategy", sharding},
    KeyHandler{"fsdp_config.fsdp_reshard_after_forward", reshard},
    KeyHandler{"fsdp_config.fsdp_offload_params", only_off},
    KeyHandler{"fsdp_config.fsdp_activation_checkpointing", [](const SourceKey& k, TrainingImport& o) { o.set(k, "memory.recompute", flag(k) ? "full" : "none"); }},
    KeyHandler{"fsdp_config.fsdp_backward_prefetch", [](const SourceKey& k, TrainingImport& o) {
                 o.set(k, "parallel.prefetch", one_of_words(k, {{"BACKWARD_PRE", "1"}, {"BACKWARD_POST", "0"}, {"NO_PREFETCH", "0"}, {"null", "0"}, {"1", "1"}, {"2", "0"}}));
               }},
    KeyHandler{"deepspeed_config.deepspeed_config_file", deepspeed_file},
    KeyHandler{"deepspeed_config.zero_stage", [](const SourceKey& k, TrainingImport& o) {
                 o.set(k, "parallel.zero", one_of_words(k, {{"0", "0"}, {"1", "1"}, {"2", "2"}, {"3", "3"}}));
                 o.deepspeed = true;
               }},
    KeyHandler{"deepspeed_config.gradient_accumulation_steps", accumulation},
    KeyHandler{"deepspeed_config.offload_optimizer_device", offload_device},
    KeyHandler{"deepspeed_config.offload_param_device", offload_device},
    KeyHandler{"megatron_lm_config.megatron_lm_tp_degree", [](const SourceKey& k, TrainingImport& o) { o.set_whole(k, "parallel.tp"); }},
    KeyHandler{"megatron_lm_config.megatron_lm_pp_degree", [](const SourceKey& k, TrainingImport& o) { o.set_whole(k, "parallel.pp"); }},
    KeyHandler{"megatron_lm_config.megatron_lm_num_micro_batches", accumulation},
    KeyHandler{"megatron_lm_config.megatron_lm_sequence_parallelism", [](const SourceKey& k, TrainingImport& o) { o.set(k, "parallel.sequence_parallel", flag(k) ? "true" : "false"); }},
    KeyHandler{"megatron_lm_config.megatron_lm_use_distributed_optimizer", [](const SourceKey& k, TrainingImport& o) { o.set(k, "parallel.zero", flag(k) ? "1" : "0"); }},
    KeyHandler{"megatron_lm_config.megatron_lm_recompute_activations", [](const SourceKey& k, TrainingImport& o) { o.set(k, "memory.recompute", flag(k) ? "selective" : "none"); }},
    KeyHandler{"parallelism_config.parallelism_config_tp_size", [](const SourceKey& k, TrainingImport& o) { o.set_whole(k, "parallel.tp"); }},
    KeyHandler{"parallelism_config.parallelism_config_cp_size", [](const SourceKey& k, TrainingImport& o) { o.set_whole(k, "parallel.cp"); }},
    KeyHandler{"parallelism_config.parallelism_config_sp_size", [](const SourceKey& k, TrainingImport& o) {
                 if (whole_number(k) == 1) return o.understood(k, "off");
                 o.set_whole(k, "parallel.cp");
                 o.settings["parallel.cp_style"] = {"ulysses", k.name, false};
               }},
    KeyHandler{"parallelism_config.parallelism_config_cp_comm_strategy", [](const SourceKey& k, TrainingImport& o) {
                 o.set(k, "parallel.cp_style", one_of_words(k, {{"allgather", "all-gather"}, {"alltoall", "ring"}}));
               }},
    KeyHandler{"parallelism_config.parallelism_config_dp_replicate_size", [](const SourceKey& k, TrainingImport& o) {
                 o.replicas = whole_number(k);
                 o.understood(k, "replicas");
               }},
    KeyHandler{"parallelism_config.parallelism_config_dp_shard_size", [](const SourceKey& k, TrainingImport& o) {
                 o.shards = whole_number(k);
                 o.understood(k, "shards");
               }},
};

constexpr Fate kIgnored = Fate::kIgnored;
constexpr Fate kNotExpressed = Fate::kNotExpressed;

constexpr std::array kRules{
    KeyRule{"fsdp_config.fsdp_auto_wrap_policy", kIgnored, "layers are the units"},
    KeyRule{"fsdp_config.fsdp_transformer_layer_cls_to_wrap", kIgnored, "layers are the units"},
    KeyRule{"fsdp_config.fsdp_min_num_params", kNotExpressed, "layers are the units"},
    KeyRule{"fsdp_config.fsdp_forward_prefetch", kIgnored, "gathers run on a stream of their own either way"},
    KeyRule{"fsdp_config.fsdp_version", kIgnored, "both versions shard alike"},
    KeyRule{"fsdp_config.*", kIgnored, "loading, checkpoints and checks are not part of a step"},
    KeyRule{"fp8_config.*", kIgnored, "fp8 recipes differ in less than is modelled"},
    KeyRule{"deepspeed_config.zero3*", kIgnored, "loading and checkpoints are not part of a step"},
    KeyRule{"deepspeed_config.gradient_clipping", kIgnored, "the forecast always counts the gradients' norm"},
    KeyRule{"deepspeed_config.offload_optimizer_nvme_path", kNotExpressed, "offload is not modelled yet"},
    KeyRule{"deepspeed_config.offload_param_nvme_path", kNotExpressed, "offload is not modelled yet"},
    KeyRule{"deepspeed_config.*", kIgnored, "launching is not part of a step"},
    KeyRule{"megatron_lm_config.*", kIgnored, "costs nothing that is modelled"},
    KeyRule{"dynamo_config.*", kNotExpressed, "compiled graphs: model.fused_kernels says how kernels are fused"},
    KeyRule{"dynamo_backend", kNotExpressed, "compiled graphs: model.fused_kernels says how kernels are fused"},
    KeyRule{"parallelism_config.parallelism_config_sp*", kIgnored, "which code exchanges heads"},
    KeyRule{"gradient_clipping", kIgnored, "the forecast always counts the gradients' norm"},
    KeyRule{"debug", kIgnored, "logging"},
    KeyRule{"enable_cpu_affinity", kIgnored, "the host is modelled as well placed"},
    KeyRule{"use_cpu", kIgnored, "launching is not part of a step"},
    KeyRule{"downcast_bf16", kIgnored, "for TPUs"},
    KeyRule{"tpu*", kIgnored, "for TPUs"},
    KeyRule{"fp16", kNotExpressed, "an old key: mixed_precision says it"},
    KeyRule{"compute_environment", kIgnored, "launching is not part of a step"},
    KeyRule{"machine_rank", kIgnored, "launching is not part of a step"},
    KeyRule{"main_*", kIgnored, "launching is not part of a step"},
    KeyRule{"gpu_ids", kIgnored, "launching is not part of a step"},
    KeyRule{"rdzv_*", kIgnored, "launching is not part of a step"},
    KeyRule{"same_network", kIgnored, "launching is not part of a step"},
    KeyRule{"command_file", kIgnored, "launching is not part of a step"},
    KeyRule{"commands", kIgnored, "launching is not part of a step"},
    KeyRule{"deepspeed_hostfile", kIgnored, "launching is not part of a step"},
};

void finish(const SourceFile& source, TrainingImport& out) {
  if (!out.has("training.precision") && source.find("mixed_precision") == nullptr)
    out.settings["training.precision"] = {"fp32", "no mixed_precision", true};
  // Shards and replicas say more than the strategy; one shard is data parallel.
  if (out.shards && *out.shards == 1 && out.replicas.value_or(1) > 1) out.settings["parallel.zero"] = {"0", "dp_shard_size 1", false};
}

}  // namespace

extern const TrainingForm kAccelerate{"accelerate", "accelerate configuration", read_yaml_keys, kHandlers, kRules, finish};

}  // namespace stepcast::app
