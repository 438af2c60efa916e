// torchtitan's TOML (up to 0.2.2), old names included. Source of the keys: torchtitan's job_config.
#include <array>

#include "app/importers/training/training_import.hpp"

namespace stepcast::app {
namespace {

// The flavour names a table in torchtitan's code: which of our presets that is.
struct Flavor {
  std::string_view name;
  std::string_view flavor;
  std::string_view preset;
};
constexpr std::array kFlavors{
    Flavor{"llama3", "8B", "llama3-8b"},           Flavor{"llama3", "70B", "llama3-70b"},     Flavor{"llama3", "405B", "llama3-405b"},
    Flavor{"llama3_ft", "8B", "llama3-8b"},        Flavor{"llama2", "7B", "llama2-7b"},       Flavor{"llama2", "13B", "llama2-13b"},
    Flavor{"llama2", "70B", "llama2-70b"},         Flavor{"qwen3", "0.6B", "qwen3-0.6b"},     Flavor{"qwen3", "1.7B", "qwen3-1.7b"},
    Flavor{"qwen3", "4B", "qwen3-4b"},             Flavor{"qwen3", "8B", "qwen3-8b"},         Flavor{"qwen3", "14B", "qwen3-14b"},
    Flavor{"qwen3", "32B", "qwen3-32b"},
};

void dtype(const SourceKey& key, TrainingImport& out, const char* path) {
  out.set(key, path, one_of_words(key, {{"bfloat16", "bf16"}, {"float16", "fp16"}, {"float32", "fp32"}}));
}

void replicas(const SourceKey& key, TrainingImport& out) {
  out.replicas = whole_number(key);
  out.understood(key, "replicas");
}

void shards(const SourceKey& key, TrainingImport& out) {
  out.shards = key.value == "-1" ? 0 : whole_number(key);
  out.understood(key, key.value == "-1" ? "shards: what is left of the cluster" : "shards");
}

void only_off(const SourceKey& key, TrainingImport& out) {
  if (flag(key)) {
    out.not_expressed(key, "the scenario has no word for it");
  } else {
    out.understood(key, "off");
  }
}

void reshard(const SourceKey& key, TrainingImport& out) {
  const std::string word = one_of_words(key, {{"default", "default"}, {"always", "true"}, {"never", "false"}});
  if (word == "default") return out.understood(key, "resharded, but with pipeline parallelism kept gathered");
  out.set(key, "parallel.zero3_reshard_after_forward", word);
}

void schedule(const SourceKey& key, TrainingImport& out) {
  const std::string word = one_of_words(key, {{"1F1B", "1f1b"}, {"GPipe", "gpipe"}, {"Interleaved1F1B", "interleaved"}, {"InterleavedZeroBubble", "no"},
                                              {"ZBVZeroBubble", "zb-v"}, {"DualPipeV", "dualpipe-v"}, {"LoopedBFS", "no"}});
  if (word == "no") return out.not_expressed(key, "1F1B stands in its place");
  out.set(key, "parallel.schedule", word);
}

void recompute(const SourceKey& key, TrainingImport& out) {
  out.set(key, "memory.recompute", one_of_words(key, {{"none", "none"}, {"selective", "selective"}, {"full", "full"}, {"memory_budget", "selective"}}));
}

void selective(const SourceKey& key, TrainingImport& out) {
  out.understood(key, key.value == "op" ? "by operator, where the mode is selective" : "every n-th layer, where the mode is selective");
}

void fp8_gather(const SourceKey& key, TrainingImport& out) {
  if (!flag(key)) return out.understood(key, "off");
  out.set(key, "parallel.fp8_param_gather", "true");
}

void sequence(const SourceKey& key, TrainingImport& out) { out.set_whole(key, "model.sequence"); }
void micro(const SourceKey& key, TrainingImport& out) { out.set_whole(key, "batch.micro"); }
void tp(const SourceKey& key, TrainingImport& out) { out.set_whole(key, "parallel.tp"); }
void pp(const SourceKey& key, TrainingImport& out) { out.set_whole(key, "parallel.pp"); }
void cp(const SourceKey& key, TrainingImport& out) { out.set_whole(key, "parallel.cp"); }
void ep(const SourceKey& key, TrainingImport& out) {
  if (whole_number(key) > 1) return out.set_whole(key, "parallel.ep");
  out.understood(key, "off");
}
void etp(const SourceKey& key, TrainingImport& out) { out.set_whole(key, "parallel.etp"); }
void named(const SourceKey& key, TrainingImport& out) { out.understood(key, "model"); }

constexpr std::array kHandlers{
    KeyHandler{"model.name", named},
    KeyHandler{"model.flavor", named},
    KeyHandler{"training.seq_len", sequence},
    KeyHandler{"training.local_batch_size", micro},
    KeyHandler{"training.batch_size", micro},
    KeyHandler{"training.global_batch_size", [](const SourceKey& k, TrainingImport& o) {
                 if (k.value == "-1") return o.understood(k, "one local batch of every replica");
                 o.set_whole(k, "batch.global");
               }},
    KeyHandler{"quantize.linear.float8.enable_fsdp_float8_all_gather", fp8_gather},
    KeyHandler{"float8.enable_fsdp_float8_all_gather", fp8_gather},
    KeyHandler{"training.mixed_precision_param", [](const SourceKey& k, TrainingImport& o) { dtype(k, o, "training.precision"); }},
    KeyHandler{"training.mixed_precision_reduce", [](const SourceKey& k, TrainingImport& o) { dtype(k, o, "memory.gradients"); }},
    KeyHandler{"training.enable_cpu_offload", only_off},
    KeyHandler{"training.tensor_parallel_degree", tp},
    KeyHandler{"training.data_parallel_replicate_degree", replicas},
    KeyHandler{"training.data_parallel_shard_degree", shards},
    KeyHandler{"parallelism.data_parallel_replicate_degree", replicas},
    KeyHandler{"parallelism.data_parallel_shard_degree", shards},
    KeyHandler{"parallelism.fsdp_reshard_after_forward", reshard},
    KeyHandler{"parallelism.tensor_parallel_degree", tp},
    KeyHandler{"parallelism.enable_async_tensor_parallel", only_off},
    KeyHandler{"parallelism.pipeline_parallel_degree", pp},
    KeyHandler{"parallelism.pipeline_parallel_schedule", schedule},
    KeyHandler{"parallelism.pipeline_parallel_microbatch_size", [](const SourceKey& k, TrainingImport& o) { o.understood(k, "batch.micro with pipeline parallelism: " + std::to_string(whole_number(k))); }},
    KeyHandler{"parallelism.context_parallel_degree", cp},
    KeyHandler{"parallelism.expert_parallel_degree", ep},
    KeyHandler{"parallelism.expert_tensor_parallel_degree", etp},
    KeyHandler{"experimental.pipeline_parallel_degree", pp},
    KeyHandler{"experimental.pipeline_parallel_schedule", schedule},
    KeyHandler{"experimental.context_parallel_degree", cp},
    KeyHandler{"experimental.enable_async_tensor_parallel", only_off},
    KeyHandler{"activation_checkpoint.mode", recompute},
    KeyHandler{"activation_checkpoint.selective_ac_option", selective},
    KeyHandler{"optimizer.name", [](const SourceKey& k, TrainingImport& o) { o.set(k, "training.optimizer", one_of_words(k, {{"AdamW", "adamw"}, {"Adam", "adam"}})); }},
};

constexpr Fate kIgnored = Fate::kIgnored;
constexpr Fate kNotExpressed = Fate::kNotExpressed;

constexpr std::array kRules{
    KeyRule{"model.converters", kIgnored, "seen together with the float8 settings"},
    KeyRule{"model.hf_assets_path", kIgnored, "tokenizer and weights"},
    KeyRule{"model.tokenizer_path", kIgnored, "tokenizer"},
    KeyRule{"model.norm_type", kIgnored, "the preset's"},
    KeyRule{"model.print_after_conversion", kIgnored, "logging"},
    KeyRule{"training.max_norm", kIgnored, "the forecast always counts the gradients' norm"},
    KeyRule{"training.gc_freq", kIgnored, "not modelled: pauses of the host"},
    KeyRule{"training.warmup_steps", kIgnored, "learning rate"},
    KeyRule{"training.compile", kNotExpressed, "compiled graphs: model.fused_kernels says how kernels are fused"},
    KeyRule{"training.*", kIgnored, "data, length of the run, checks"},
    KeyRule{"compile.*", kNotExpressed, "compiled graphs: model.fused_kernels says how kernels are fused"},
    KeyRule{"quantize.*", kIgnored, "seen together with the converters"},
    KeyRule{"float8.*", kIgnored, "seen together with the converters"},
    KeyRule{"parallelism.context_parallel_rotate_method", kNotExpressed, "parallel.cp_style says it: ring or all-gather"},
    KeyRule{"parallelism.*", kNotExpressed, "the scenario has no word for it"},
    KeyRule{"experimental.*", kNotExpressed, "the scenario has no word for it"},
    KeyRule{"activation_checkpoint.*", kIgnored, "details of the selection"},
    KeyRule{"optimizer.*", kIgnored, "hyperparameter"},
    KeyRule{"lr_scheduler.*", kIgnored, "learning rate"},
    KeyRule{"job.*", kIgnored, "names and folders"},
    KeyRule{"profiling.*", kIgnored, "logging"},
    KeyRule{"metrics.*", kIgnored, "logging"},
    KeyRule{"checkpoint.*", kIgnored, "checkpoints are not part of a step"},
    KeyRule{"validation.*", kIgnored, "not part of a step"},
    KeyRule{"comm.*", kIgnored, "time-outs"},
    KeyRule{"memory_estimation.*", kIgnored, "`stepcast memory` does it"},
    KeyRule{"fault_tolerance.*", kNotExpressed, "replicas of torchft have no word"},
    KeyRule{"debug.*", kIgnored, "checks"},
};

std::string value_of(const SourceFile& source, const char* name) {
  const SourceKey* key = source.find(name);
  return key == nullptr ? "" : key->value;
}

// "op" (the default), or "2": each second layer as a whole.
void finish_recompute(const SourceFile& source, TrainingImport& out) {
  constexpr const char* kOption = "activation_checkpoint.selective_ac_option";
  const SourceKey* option = source.find(kOption);
  if (option == nullptr || option->value == "op") {
    out.settings["memory.recompute"] = {"operators", kOption, false};
    return;
  }
  out.settings["memory.recompute"] = {"full", kOption, false};
  out.settings["memory.recompute_method"] = {"every", kOption, false};
  out.settings["memory.recompute_layers"] = {std::to_string(whole_number(*option)), kOption, false};
}

void finish(const SourceFile& source, TrainingImport& out) {
  const std::string name = value_of(source, "model.name");
  const std::string flavor = value_of(source, "model.flavor");
  bool known = false;
  for (const Flavor& entry : kFlavors) {
    if (entry.name != name || entry.flavor != flavor) continue;
    out.settings["model.preset"] = {std::string{entry.preset}, "model.name and model.flavor", false};
    known = true;
  }
  if (!known) out.unknown_model = name + " " + flavor + ", whose layers stand in torchtitan's code and not in the file";
  if (value_of(source, "model.converters").find("float8") != std::string::npos) out.settings["training.precision"] = {"fp8", "model.converters", false};
  if (out.has("memory.recompute") && out.settings.at("memory.recompute").value == "selective") finish_recompute(source, out);
  const std::int64_t pp_size = out.whole("parallel.pp", 1);
  const bool sharded = !out.shards || *out.shards != 1;
  out.settings.try_emplace("parallel.zero", Setting{sharded ? "3" : "0", sharded ? "FSDP" : "data_parallel_shard_degree 1", false});
  // A local batch is cut into micro-batches only for a pipeline.
  if (pp_size > 1) {
    const std::int64_t local = out.whole("batch.micro", 1);
    const SourceKey* size = source.find("parallelism.pipeline_parallel_microbatch_size");
    const std::int64_t cut = size == nullptr ? 1 : whole_number(*size);
    out.settings["batch.micro"] = {std::to_string(cut), "pipeline_parallel_microbatch_size", false};
    out.accumulation = local / cut;
    if (sharded && !out.has("parallel.zero3_reshard_after_forward")) out.settings["parallel.zero3_reshard_after_forward"] = {"false", "fsdp_reshard_after_forward, default with a pipeline", false};
  } else if (const SourceKey* schedule_key = source.find("parallelism.pipeline_parallel_schedule"); schedule_key != nullptr) {
    out.settings.erase("parallel.schedule");  // without a pipeline it says nothing
  }
  if (!out.accumulation && out.has("batch.micro")) out.accumulation = 1;
  out.settings.try_emplace("training.precision", Setting{"bf16", "torchtitan's default", false});
  if (out.settings.at("training.precision").value != "fp8" || out.settings.at("parallel.zero").value == "0") out.settings.erase("parallel.fp8_param_gather");
  // Sequence parallelism comes with tensor parallelism (parallelize_llama).
  if (out.whole("parallel.tp", 1) > 1) out.settings.try_emplace("parallel.sequence_parallel", Setting{"true", "torchtitan shards norms with tensor parallelism", false});
}

}  // namespace

extern const TrainingForm kTorchtitan{"torchtitan", "torchtitan configuration", read_toml_keys, kHandlers, kRules, finish};

}  // namespace stepcast::app
