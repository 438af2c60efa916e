// DeepSpeed's ds_config.json. Source of the keys: DeepSpeed's documentation of its configuration (config-json),
// version 0.18; old names (cpu_offload, bfloat16, stage3_gather_fp16_weights_on_model_save) as older files have them.
#include <array>
#include <initializer_list>

#include <fmt/format.h>

#include "app/importers/training/training_import.hpp"
#include "sim/base/text.hpp"

namespace stepcast::app {
namespace {

constexpr const char* kOffload = "of offload, only where optimizer and parameters lie is modelled";
constexpr const char* kNvme = "offload to NVMe is not modelled yet";

void precision(const SourceKey& key, TrainingImport& out) {
  const std::string name = key.name.substr(0, 4) == "fp16" ? "fp16" : "bf16";
  if (flag(key)) {
    out.set(key, "training.precision", name);
  } else {
    out.understood(key, "off");
  }
}

void offload_to(const SourceKey& key, TrainingImport& out, std::initializer_list<const char*> parts) {
  const std::string device = one_of_words(key, {{"none", "no"}, {"cpu", "yes"}, {"nvme", "file"}, {"null", "no"}});
  if (device == "no") return out.understood(key, "no offload");
  if (device == "file") return out.not_expressed(key, kNvme);
  out.offload.insert(out.offload.end(), parts.begin(), parts.end());
  out.set(key, "memory.offload", fmt::format("[{}]", join(out.offload, ", ")));
}
void offload_optimizer(const SourceKey& key, TrainingImport& out) { offload_to(key, out, {"master", "momentum", "variance"}); }
void offload_parameters(const SourceKey& key, TrainingImport& out) { offload_to(key, out, {"parameters"}); }

void only_off(const SourceKey& key, TrainingImport& out) {
  if (flag(key)) {
    out.not_expressed(key, "the scenario has no word for it");
  } else {
    out.understood(key, "off");
  }
}

void optimizer(const SourceKey& key, TrainingImport& out) {
  constexpr std::array<std::pair<const char*, const char*>, 9> kKnown{{{"Adam", "adam"}, {"adam", "adam"}, {"FusedAdam", "adam"}, {"AdamW", "adamw"}, {"adamw", "adamw"},
                                                                       {"SGD", "sgd"}, {"sgd", "sgd"}, {"Muon", "muon"}, {"muon", "muon"}}};
  for (const auto& [name, word] : kKnown)
    if (key.value == name) return out.set(key, "training.optimizer", word);
  out.not_expressed(key, "Adam stands in its place");
}

void hpz(const SourceKey& key, TrainingImport& out) {
  if (whole_number(key) == 1) {
    out.understood(key, "no secondary shards");
  } else {
    out.not_expressed(key, "secondary shards within a node (ZeRO++) have no word");
  }
}

void elements_dtype(const SourceKey& key, TrainingImport& out) {
  out.set(key, "memory.gradients", one_of_words(key, {{"fp32", "fp32"}, {"fp16", "fp16"}, {"bf16", "bf16"}, {"bfp16", "bf16"}}));
}

void reduce_dtype(const SourceKey& key, TrainingImport& out) {
  out.set(key, "memory.reduce_gradients", one_of_words(key, {{"fp32", "fp32"}, {"fp16", "fp16"}, {"bf16", "bf16"}, {"bfp16", "bf16"}}));
}

constexpr std::array kHandlers{
    KeyHandler{"train_batch_size", [](const SourceKey& k, TrainingImport& o) { o.set_whole(k, "batch.global"); }},
    KeyHandler{"train_micro_batch_size_per_gpu", [](const SourceKey& k, TrainingImport& o) { o.set_whole(k, "batch.micro"); }},
    KeyHandler{"gradient_accumulation_steps", [](const SourceKey& k, TrainingImport& o) {
                 o.accumulation = whole_number(k);
                 o.understood(k, "micro-batches of a step");
               }},
    KeyHandler{"zero_optimization.stage", [](const SourceKey& k, TrainingImport& o) {
                 o.set(k, "parallel.zero", one_of_words(k, {{"0", "0"}, {"1", "1"}, {"2", "2"}, {"3", "3"}}));
                 o.deepspeed = true;
               }},
    KeyHandler{"zero_optimization.overlap_comm", [](const SourceKey& k, TrainingImport& o) { o.set(k, "parallel.overlap_grad_reduce", flag(k) ? "true" : "false"); }},
    KeyHandler{"zero_optimization.reduce_bucket_size", [](const SourceKey& k, TrainingImport& o) {
                 o.bucket_elements = whole_number(k);
                 o.understood(k, "parallel.bucket");
               }},
    KeyHandler{"zero_optimization.offload_optimizer.device", offload_optimizer},
    KeyHandler{"zero_optimization.offload_param.device", offload_parameters},
    KeyHandler{"zero_optimization.cpu_offload", only_off},
    KeyHandler{"zero_optimization.cpu_offload_params", only_off},
    KeyHandler{"zero_optimization.zero_hpz_partition_size", hpz},
    KeyHandler{"zero_optimization.zero_quantized_weights", only_off},
    KeyHandler{"zero_optimization.zero_quantized_gradients", only_off},
    KeyHandler{"zero_optimization.mics_shard_size", [](const SourceKey& k, TrainingImport& o) {
                 if (k.value == "-1") return o.understood(k, "off");
                 o.set_whole(k, "parallel.shard_group");
               }},
    KeyHandler{"fp16.enabled", precision},
    KeyHandler{"bf16.enabled", precision},
    KeyHandler{"bfloat16.enabled", precision},
    KeyHandler{"communication_data_type", reduce_dtype},
    KeyHandler{"data_types.grad_accum_dtype", elements_dtype},
    KeyHandler{"optimizer.type", optimizer},
    KeyHandler{"tensor_parallel.autotp_size", [](const SourceKey& k, TrainingImport& o) { o.set_whole(k, "parallel.tp"); }},
    KeyHandler{"pipeline.stages", [](const SourceKey& k, TrainingImport& o) { o.set_whole(k, "parallel.pp"); }},
    KeyHandler{"activation_checkpointing.partition_activations", only_off},
    KeyHandler{"activation_checkpointing.cpu_checkpointing", only_off},
    KeyHandler{"sequence_parallel_size", [](const SourceKey& k, TrainingImport& o) {
                 o.set_whole(k, "parallel.cp");
                 o.settings["parallel.cp_style"] = {"ulysses", k.name, false};
               }},
};

constexpr Fate kIgnored = Fate::kIgnored;
constexpr Fate kNotExpressed = Fate::kNotExpressed;

constexpr std::array kRules{
    KeyRule{"zero_optimization.allgather_bucket_size", kNotExpressed, "parameters are gathered by bucket or layer of the scenario"},
    KeyRule{"zero_optimization.stage3_prefetch_bucket_size", kNotExpressed, "prefetch counts layers (parallel.prefetch)"},
    KeyRule{"zero_optimization.stage3_max_live_parameters", kNotExpressed, "prefetch counts layers (parallel.prefetch)"},
    KeyRule{"zero_optimization.stage3_max_reuse_distance", kNotExpressed, "parallel.zero3_reshard_after_forward says whether layers stay gathered"},
    KeyRule{"zero_optimization.stage3_param_persistence_threshold", kNotExpressed, "small parameters that stay whole have no word"},
    KeyRule{"zero_optimization.param_persistence_threshold", kNotExpressed, "small parameters that stay whole have no word"},
    KeyRule{"zero_optimization.model_persistence_threshold", kNotExpressed, "small parameters that stay whole have no word"},
    KeyRule{"zero_optimization.max_live_parameters", kNotExpressed, "prefetch counts layers (parallel.prefetch)"},
    KeyRule{"zero_optimization.prefetch_bucket_size", kNotExpressed, "prefetch counts layers (parallel.prefetch)"},
    KeyRule{"zero_optimization.max_reuse_distance", kNotExpressed, "parallel.zero3_reshard_after_forward says whether layers stay gathered"},
    KeyRule{"zero_optimization.offload_optimizer.*", kNotExpressed, kOffload},
    KeyRule{"zero_optimization.offload_param.*", kNotExpressed, kOffload},
    KeyRule{"zero_optimization.zenflow.*", kNotExpressed, kOffload},
    KeyRule{"zero_optimization.mics_hierarchical_params_gather", kNotExpressed, "gathers are one collective"},
    KeyRule{"zero_optimization.reduce_scatter", kIgnored, "gradients are scattered where they are sharded"},
    KeyRule{"zero_optimization.allgather_partitions", kIgnored, "parameters are gathered by all-gather"},
    KeyRule{"zero_optimization.contiguous_gradients", kIgnored, "gradients lie in buckets"},
    KeyRule{"zero_optimization.round_robin_gradients", kIgnored, "matters with offload only"},
    KeyRule{"zero_optimization.sub_group_size", kIgnored, "matters with offload only"},
    KeyRule{"zero_optimization.stage3_gather*", kIgnored, "checkpoints are not part of a step"},
    KeyRule{"zero_optimization.gather_16bit*", kIgnored, "checkpoints are not part of a step"},
    KeyRule{"zero_optimization.gather_fp16*", kIgnored, "checkpoints are not part of a step"},
    KeyRule{"zero_optimization.load_from_fp32_weights", kIgnored, "checkpoints are not part of a step"},
    KeyRule{"zero_optimization.elastic_checkpoint", kIgnored, "checkpoints are not part of a step"},
    KeyRule{"zero_optimization.ignore_unused_parameters", kIgnored, "a check, not work"},
    KeyRule{"zero_optimization.log_trace_cache_warnings", kIgnored, "logging"},
    KeyRule{"fp16.*", kIgnored, "loss scaling costs nothing that is modelled"},
    KeyRule{"bf16.*", kIgnored, "costs nothing that is modelled"},
    KeyRule{"optimizer.params.*", kIgnored, "hyperparameter"},
    KeyRule{"scheduler.*", kIgnored, "learning rate"},
    KeyRule{"gradient_clipping", kIgnored, "the forecast always counts the gradients' norm"},
    KeyRule{"activation_checkpointing.*", kIgnored, "which layers are recomputed is the script's choice: --set memory.recompute=full"},
    KeyRule{"compile.*", kNotExpressed, "compiled graphs: model.fused_kernels says how kernels are fused"},
    KeyRule{"compression_training.*", kNotExpressed, "compression has no word"},
    KeyRule{"zero_allow_untested_optimizer", kIgnored, "a check, not work"},
    KeyRule{"zero_force_ds_cpu_optimizer", kIgnored, "matters with offload only"},
    KeyRule{"prescale_gradients", kIgnored, "arithmetic, not time"},
    KeyRule{"gradient_predivide_factor", kIgnored, "arithmetic, not time"},
    KeyRule{"sparse_gradients", kNotExpressed, "gradients are dense"},
    KeyRule{"seq_parallel_communication_data_type", kNotExpressed, "activations travel in the precision of training"},
    KeyRule{"steps_per_print", kIgnored, "logging"},
    KeyRule{"wall_clock_breakdown", kIgnored, "logging (its synchronisation costs time on a real run)"},
    KeyRule{"memory_breakdown", kIgnored, "logging"},
    KeyRule{"dump_state", kIgnored, "logging"},
    KeyRule{"disable_allgather", kNotExpressed, "parameters are gathered by all-gather"},
    KeyRule{"flops_profiler.*", kIgnored, "logging"},
    KeyRule{"tensorboard.*", kIgnored, "logging"},
    KeyRule{"wandb.*", kIgnored, "logging"},
    KeyRule{"csv_monitor.*", kIgnored, "logging"},
    KeyRule{"comms_logger.*", kIgnored, "logging"},
    KeyRule{"autotuning.*", kIgnored, "a search that DeepSpeed makes; `stepcast compare` makes one"},
    KeyRule{"elasticity.*", kIgnored, "the size of the cluster is the scenario's"},
    KeyRule{"aio.*", kNotExpressed, kOffload},
    KeyRule{"checkpoint.*", kIgnored, "checkpoints are not part of a step"},
    KeyRule{"data_types.*", kIgnored, "costs nothing that is modelled"},
    KeyRule{"data_efficiency.*", kNotExpressed, "batches are of equal length"},
    KeyRule{"curriculum_learning.*", kNotExpressed, "batches are of equal length"},
    KeyRule{"progressive_layer_drop.*", kNotExpressed, "all layers run"},
    KeyRule{"loss_scale*", kIgnored, "costs nothing that is modelled"},
};

void finish(const SourceFile& source, TrainingImport& out) {
  // Without fp16 or bf16 DeepSpeed trains in fp32; "auto" leaves it to the command line.
  const auto is_auto = [&](const char* name) { const SourceKey* key = source.find(name); return key != nullptr && key->value == "auto"; };
  if (!out.has("training.precision") && !is_auto("fp16.enabled") && !is_auto("bf16.enabled"))
    out.settings["training.precision"] = {"fp32", "neither fp16 nor bf16 is enabled", false};
}

}  // namespace

extern const TrainingForm kDeepSpeed{"deepspeed", "DeepSpeed configuration", read_json_keys, kHandlers, kRules, finish};

}  // namespace stepcast::app
