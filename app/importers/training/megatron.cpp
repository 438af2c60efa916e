// Megatron-LM's arguments. Source of the names and defaults: Megatron-LM megatron/training/arguments.py; old names
// (checkpoint-activations, activations-checkpoint-method, DDP-impl) as scripts of 2021 have them.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "app/importers/training/training_import.hpp"
#include "sim/base/text.hpp"

namespace stepcast::app {
namespace {

template <std::size_t N>
struct Path {
  constexpr Path(const char (&text)[N]) { std::copy_n(text, N, value); }  // NOLINT(google-explicit-constructor)
  char value[N];
};

// A number as it is.
template <Path path>
void number(const SourceKey& key, TrainingImport& out) {
  out.set_whole(key, path.value);
}
// A flag that stands for one setting.
template <Path path, Path value>
void means(const SourceKey& key, TrainingImport& out) {
  if (flag(key)) {
    out.set(key, path.value, value.value);
  } else {
    out.understood(key, "off");
  }
}
void noted(const SourceKey& key, TrainingImport& out) { out.understood(key, "together with other arguments"); }

void only_one(const SourceKey& key, TrainingImport& out) {
  if (whole_number(key) == 1) {
    out.understood(key, "off");
  } else {
    out.not_expressed(key, "the scenario has no word for it");
  }
}

void ep(const SourceKey& key, TrainingImport& out) {
  if (whole_number(key) == 1) return out.understood(key, "off");
  out.set_whole(key, "parallel.ep");
}

// "([0]*3+[1]*29)" or "[0]*3+[1]*29": dense layers, then layers with experts; a number: every so many-th layer.
void moe_layers(const SourceKey& key, TrainingImport& out) {
  if (key.value == "true" || key.value.find('$') != std::string::npos) return out.not_expressed(key, "its value is not in the file");
  std::string text = key.value;
  std::erase_if(text, [](char c) { return c == '(' || c == ')' || c == ' '; });
  if (text.find('[') == std::string::npos) return out.set_whole(key, "model.shape.moe_every");
  const std::size_t plus = text.find('+');
  const bool two = plus != std::string::npos && text.rfind("[0]*", 0) == 0 && text.compare(plus + 1, 4, "[1]*") == 0;
  if (!two) return out.not_expressed(key, "layers with and without experts in another order");
  out.set(key, "model.shape.dense_layers", std::to_string(whole_number({key.name, text.substr(4, plus - 4), key.at})));
}

void capacity(const SourceKey& key, TrainingImport& out) { out.set(key, "model.capacity_factor", key.value); }

void context_style(const SourceKey& key, TrainingImport& out) {
  out.set(key, "parallel.cp_style", one_of_words(key, {{"p2p", "ring"}, {"a2a", "ulysses"}, {"all_gather", "all-gather"}}));
}

void dropout(const SourceKey& key, TrainingImport& out) {
  if (out.has("model.dropout") && out.settings.at("model.dropout").value != "0") return out.understood(key, "model.dropout");
  const auto value = key.value == "0.0" ? std::string{"0"} : key.value;
  out.set(key, "model.dropout", value);
}

void position(const SourceKey& key, TrainingImport& out) {
  out.set(key, "model.shape.position", one_of_words(key, {{"rope", "rotary"}, {"yarn", "rotary"}, {"learned_absolute", "learned"}, {"absolute", "learned"},
                                                          {"PositionEmbeddingType.absolute", "learned"}, {"PositionEmbeddingType.rotary", "rotary"},
                                                          {"PositionEmbeddingType.alibi", "alibi"}, {"rotary", "rotary"}, {"alibi", "alibi"}, {"none", "none"}}));
}

void norm(const SourceKey& key, TrainingImport& out) {
  out.set(key, "model.shape.norm", one_of_words(key, {{"RMSNorm", "rmsnorm"}, {"LayerNorm", "layernorm"}}));
}

void recompute(const SourceKey& key, TrainingImport& out) {
  out.set(key, "memory.recompute", one_of_words(key, {{"full", "full"}, {"selective", "selective"}}));
}

// "core_attn moe_act": the scenario's words are Megatron's.
void recompute_modules(const SourceKey& key, TrainingImport& out) {
  std::string list = key.value;
  std::erase_if(list, [](char c) { return c == '[' || c == ']' || c == '\'' || c == '"'; });
  std::replace(list.begin(), list.end(), ',', ' ');
  std::vector<std::string> words = split(list, ' ');
  std::erase(words, "");
  out.set(key, "memory.recompute_modules", "[" + join(words, ", ") + "]");
}

void recompute_method(const SourceKey& key, TrainingImport& out) {
  out.set(key, "memory.recompute_method", one_of_words(key, {{"uniform", "uniform"}, {"block", "block"}}));
}

void recompute_layers(const SourceKey& key, TrainingImport& out) {
  if (key.value.find('$') != std::string::npos) return out.not_expressed(key, "a variable that the file does not set");
  out.set_whole(key, "memory.recompute_layers");
}

void sharding(const SourceKey& key, TrainingImport& out) {
  out.set(key, "parallel.zero", one_of_words(key, {{"no_shard", "0"}, {"optim", "1"}, {"optim_grads", "2"}, {"optim_grads_params", "3"}}));
}

template <Path path>
void format(const SourceKey& key, TrainingImport& out) {
  out.set(key, path.value, one_of_words(key, {{"fp32", "fp32"}, {"bf16", "bf16"}, {"fp16", "fp16"}}));
}
void states(const SourceKey& key, TrainingImport& out) {
  out.set(key, "memory.optimizer_states", one_of_words(key, {{"fp32", "fp32"}, {"bf16", "bf16"}, {"fp16", "fp16"}, {"fp8", "fp8"}}));
}
// Both moments have one format here: the wider one counts.
void second_states(const SourceKey& key, TrainingImport& out) {
  if (out.has("memory.optimizer_states") && out.settings.at("memory.optimizer_states").value == key.value) return out.understood(key, "memory.optimizer_states");
  out.not_expressed(key, "both moments have the format of the first");
}
void main_parameters(const SourceKey& key, TrainingImport& out) {
  if (key.value == "fp32") return out.understood(key, "memory.fp32_master");
  out.not_expressed(key, "master parameters are fp32, or there are none (memory.fp32_master)");
}

void optimizer(const SourceKey& key, TrainingImport& out) {
  for (const char* known : {"adam", "sgd", "muon"})
    if (key.value == known) return out.set(key, "training.optimizer", known);
  out.not_expressed(key, "Adam stands in its place");
}

void rampup(const SourceKey& key, TrainingImport& out) { out.ignored(key, "the scenario is the batch after the ramp"); }

void gpus(const SourceKey& key, TrainingImport& out) {
  out.world = whole_number(key);
  out.understood(key, "GPUs");
}
void nodes(const SourceKey& key, TrainingImport& out) {
  if (key.value.find('$') != std::string::npos) return out.not_expressed(key, "a variable that the file does not set");
  out.set_whole(key, "cluster.nodes");
}
void node_gpus(const SourceKey& key, TrainingImport& out) {
  if (key.value.find('$') != std::string::npos || key.value == "true") return out.not_expressed(key, "a variable that the file does not set");
  out.understood(key, "GPUs of a node");
}

constexpr std::array kHandlers{
    KeyHandler{"tensor-model-parallel-size", number<"parallel.tp">},
    KeyHandler{"pipeline-model-parallel-size", number<"parallel.pp">},
    KeyHandler{"context-parallel-size", number<"parallel.cp">},
    KeyHandler{"data-parallel-size", number<"parallel.dp">},
    KeyHandler{"expert-model-parallel-size", ep},
    KeyHandler{"expert-tensor-parallel-size", number<"parallel.etp">},
    KeyHandler{"num-experts", number<"model.shape.experts">},
    KeyHandler{"moe-router-topk", number<"model.shape.top_k">},
    KeyHandler{"moe-ffn-hidden-size", number<"model.shape.expert_ffn">},
    KeyHandler{"moe-shared-expert-intermediate-size", noted},
    KeyHandler{"moe-layer-freq", moe_layers},
    KeyHandler{"moe-expert-capacity-factor", capacity},
    KeyHandler{"moe-shared-expert-overlap", means<"parallel.overlap_shared_experts", "true">},
    KeyHandler{"mtp-num-layers", number<"model.mtp_layers">},
    KeyHandler{"multi-latent-attention", noted},
    KeyHandler{"q-lora-rank", number<"model.shape.q_lora_rank">},
    KeyHandler{"kv-lora-rank", number<"model.shape.kv_lora_rank">},
    KeyHandler{"qk-head-dim", number<"model.shape.qk_nope_head_dim">},
    KeyHandler{"qk-pos-emb-head-dim", number<"model.shape.qk_rope_head_dim">},
    KeyHandler{"v-head-dim", number<"model.shape.v_head_dim">},
    KeyHandler{"qk-layernorm", means<"model.shape.qk_norm", "true">},
    KeyHandler{"cp-comm-type", context_style},
    KeyHandler{"num-distributed-optimizer-instances", only_one},
    KeyHandler{"num-layers-per-virtual-pipeline-stage", noted},
    KeyHandler{"num-virtual-stages-per-pipeline-rank", number<"parallel.virtual_stages">},
    KeyHandler{"sequence-parallel", means<"parallel.sequence_parallel", "true">},
    KeyHandler{"tp-comm-overlap", means<"parallel.overlap_tensor_parallel", "true">},
    KeyHandler{"use-distributed-optimizer", noted},
    KeyHandler{"overlap-grad-reduce", noted},
    KeyHandler{"overlap-param-gather", noted},
    KeyHandler{"use-megatron-fsdp", noted},
    KeyHandler{"use-torch-fsdp2", means<"parallel.zero", "3">},
    KeyHandler{"data-parallel-sharding-strategy", sharding},
    KeyHandler{"zero-stage", [](const SourceKey& k, TrainingImport& o) { o.set(k, "parallel.zero", std::to_string(whole_number(k, 0))); }},
    KeyHandler{"micro-batch-size", number<"batch.micro">},
    KeyHandler{"global-batch-size", number<"batch.global">},
    KeyHandler{"rampup-batch-size", rampup},
    KeyHandler{"num-layers", number<"model.shape.layers">},
    KeyHandler{"hidden-size", number<"model.shape.hidden">},
    KeyHandler{"ffn-hidden-size", number<"model.shape.ffn">},
    KeyHandler{"num-attention-heads", number<"model.shape.heads">},
    KeyHandler{"group-query-attention", noted},
    KeyHandler{"num-query-groups", noted},
    KeyHandler{"kv-channels", number<"model.shape.head_dim">},
    KeyHandler{"seq-length", number<"model.sequence">},
    KeyHandler{"encoder-seq-length", number<"model.sequence">},
    KeyHandler{"max-position-embeddings", number<"model.shape.max_positions">},
    KeyHandler{"swiglu", means<"model.shape.gated_mlp", "true">},
    KeyHandler{"untie-embeddings-and-output-weights", noted},
    KeyHandler{"disable-bias-linear", noted},
    KeyHandler{"normalization", norm},
    KeyHandler{"position-embedding-type", position},
    KeyHandler{"use-rotary-position-embeddings", means<"model.shape.position", "rotary">},
    KeyHandler{"no-position-embedding", noted},
    KeyHandler{"vocab-size", noted},
    KeyHandler{"padded-vocab-size", noted},
    KeyHandler{"pad-vocab-size-to", noted},
    KeyHandler{"make-vocab-size-divisible-by", number<"model.vocab_padding">},
    KeyHandler{"attention-dropout", dropout},
    KeyHandler{"hidden-dropout", dropout},
    KeyHandler{"recompute-granularity", recompute},
    KeyHandler{"recompute-modules", recompute_modules},
    KeyHandler{"recompute-method", recompute_method},
    KeyHandler{"recompute-num-layers", recompute_layers},
    KeyHandler{"recompute-activations", means<"memory.recompute", "selective">},
    KeyHandler{"checkpoint-activations", means<"memory.recompute", "full">},
    KeyHandler{"deepspeed-activation-checkpointing", means<"memory.recompute", "full">},
    KeyHandler{"activations-checkpoint-method", noted},
    KeyHandler{"bf16", means<"training.precision", "bf16">},
    KeyHandler{"fp16", means<"training.precision", "fp16">},
    KeyHandler{"fp8-format", noted},
    KeyHandler{"grad-reduce-in-bf16", means<"memory.gradients", "bf16">},
    KeyHandler{"accumulate-allreduce-grads-in-fp32", means<"memory.gradients", "fp32">},
    KeyHandler{"use-precision-aware-optimizer", noted},
    KeyHandler{"exp-avg-dtype", states},
    KeyHandler{"exp-avg-sq-dtype", second_states},
    KeyHandler{"main-grads-dtype", format<"memory.gradients">},
    KeyHandler{"main-params-dtype", main_parameters},
    KeyHandler{"megatron-fsdp-main-grads-dtype", format<"memory.gradients">},
    KeyHandler{"megatron-fsdp-grad-comm-dtype", format<"memory.reduce_gradients">},
    KeyHandler{"megatron-fsdp-main-params-dtype", main_parameters},
    KeyHandler{"fp8-param-gather", means<"parallel.fp8_param_gather", "true">},
    KeyHandler{"optimizer", optimizer},
    KeyHandler{"cross-entropy-loss-fusion", means<"model.fused_loss", "true">},
    KeyHandler{"no-gradient-accumulation-fusion", means<"model.fused_accumulation", "false">},
    KeyHandler{"moe-grouped-gemm", noted},
    KeyHandler{"use-flash-attn", means<"model.attention", "flash">},
    KeyHandler{"world-size", gpus},
    KeyHandler{"$WORLD_SIZE", noted},
    KeyHandler{"$NNODES", noted},
    KeyHandler{"$NUM_NODES", noted},
    KeyHandler{"$GPUS_PER_NODE", node_gpus},
    KeyHandler{"nnodes", nodes},
    KeyHandler{"nproc-per-node", node_gpus},
};

constexpr Fate kIgnored = Fate::kIgnored;
constexpr Fate kNotExpressed = Fate::kNotExpressed;
constexpr const char* kLaunch = "launching is not part of a step";
constexpr const char* kData = "data and tokenizer";
constexpr const char* kCheckpoint = "checkpoints are not part of a step";
constexpr const char* kLogging = "logging";
constexpr const char* kHyper = "hyperparameter";

constexpr std::array kRules{
    KeyRule{"moe-router-dtype", kIgnored, kHyper},
    KeyRule{"moe-router-force-load-balancing", kIgnored, "the forecast's load is balanced unless the scenario says otherwise"},
    KeyRule{"moe-router-bias-update-rate", kIgnored, kHyper},
    KeyRule{"moe-aux-loss-coeff", kIgnored, kHyper},
    KeyRule{"moe-z-loss-coeff", kIgnored, kHyper},
    KeyRule{"moe-permute-fusion", kIgnored, "tokens are sorted by fused kernels"},
    KeyRule{"moe-router-*", kIgnored, "which experts a token goes to: model.expert_skew says how uneven that is"},
    KeyRule{"moe-token-dispatcher-type", kIgnored, "tokens travel by all-to-all"},
    KeyRule{"moe-pad-expert-input-to-capacity", kIgnored, "a capacity pads"},
    KeyRule{"moe-flex-dispatcher-backend", kNotExpressed, "kernels that dispatch by themselves (DeepEP): tokens travel by all-to-all"},
    KeyRule{"moe-enable-deepep", kNotExpressed, "kernels that dispatch by themselves (DeepEP): tokens travel by all-to-all"},
    KeyRule{"moe-*", kNotExpressed, "the scenario has no word for it"},
    KeyRule{"mtp-loss-scaling-factor", kIgnored, kHyper},
    KeyRule{"embed-layernorm", kNotExpressed, "a norm after the embedding"},
    KeyRule{"checkpoint-num-layers", kIgnored, "every layer is recomputed by itself"},
    KeyRule{"distribute-checkpointed-activations", kNotExpressed, "checkpoints are whole on every GPU"},
    KeyRule{"distribute-saved-activations", kNotExpressed, "checkpoints are whole on every GPU"},
    KeyRule{"tp-comm-overlap-*", kIgnored, "how user buffers are set up"},
    KeyRule{"fp8-*", kIgnored, "fp8 recipes differ in less than is modelled"},
    KeyRule{"outer-dp-sharding-strategy", kNotExpressed, "parallel.shard_group says how far shards spread"},
    KeyRule{"megatron-fsdp-*", kNotExpressed, "buffers of Megatron-FSDP"},
    KeyRule{"fsdp-*", kNotExpressed, "buffers of Megatron-FSDP"},
    KeyRule{"use-nccl-ub", kNotExpressed, "user buffers of NCCL"},
    KeyRule{"cuda-graph*", kNotExpressed, "graphs save launches, which the forecast counts"},
    KeyRule{"enable-cuda-graph", kNotExpressed, "graphs save launches, which the forecast counts"},
    KeyRule{"decoder-last-pipeline-num-layers", kNotExpressed, "layers are cut evenly"},
    KeyRule{"pp-partition-method", kNotExpressed, "layers are cut evenly"},
    KeyRule{"account-for-*", kNotExpressed, "layers are cut evenly"},
    KeyRule{"decoder-first-pipeline-num-layers", kNotExpressed, "layers are cut evenly"},
    KeyRule{"step-batch-size-schedule", kIgnored, "the scenario is one batch size"},
    KeyRule{"deepspeed*", kIgnored, kLaunch},
    KeyRule{"rotary-*", kIgnored, "angles, not time"},
    KeyRule{"mscale*", kIgnored, "angles, not time"},
    KeyRule{"no-rope-fusion", kNotExpressed, "model.fused_kernels says how kernels are fused"},
    KeyRule{"no-masked-softmax-fusion", kNotExpressed, "model.fused_kernels says how kernels are fused"},
    KeyRule{"no-bias-*", kNotExpressed, "model.fused_kernels says how kernels are fused"},
    // No part in a step.
    KeyRule{"lr*", kIgnored, "learning rate"},
    KeyRule{"min-lr*", kIgnored, "learning rate"},
    KeyRule{"decoupled-*", kIgnored, "learning rate"},
    KeyRule{"override-*", kIgnored, "learning rate"},
    KeyRule{"use-checkpoint-*", kIgnored, "learning rate"},
    KeyRule{"adam-*", kIgnored, kHyper},
    KeyRule{"sgd-*", kIgnored, kHyper},
    KeyRule{"weight-decay*", kIgnored, kHyper},
    KeyRule{"start-weight-*", kIgnored, kHyper},
    KeyRule{"end-weight-*", kIgnored, kHyper},
    KeyRule{"init-*", kIgnored, kHyper},
    KeyRule{"clip-grad", kIgnored, "the forecast always counts the gradients' norm"},
    KeyRule{"seed", kIgnored, kHyper},
    KeyRule{"norm-epsilon", kIgnored, kHyper},
    KeyRule{"layernorm-epsilon", kIgnored, kHyper},
    KeyRule{"apply-layernorm-1p", kIgnored, kHyper},
    KeyRule{"apply-*", kIgnored, "arithmetic, not time"},
    KeyRule{"attention-softmax-in-fp32", kIgnored, "arithmetic of the flash kernel"},
    KeyRule{"loss-scale*", kIgnored, "costs nothing that is modelled"},
    KeyRule{"initial-loss-scale", kIgnored, "costs nothing that is modelled"},
    KeyRule{"min-loss-scale", kIgnored, "costs nothing that is modelled"},
    KeyRule{"hysteresis", kIgnored, "costs nothing that is modelled"},
    KeyRule{"calculate-per-token-loss", kIgnored, "costs nothing that is modelled"},
    KeyRule{"params-dtype", kIgnored, "fp16 or bf16 says it"},
    KeyRule{"train-*", kIgnored, "length of the run"},
    KeyRule{"exit-*", kIgnored, "length of the run"},
    KeyRule{"eval-*", kIgnored, "not part of a step"},
    KeyRule{"valid-*", kIgnored, "not part of a step"},
    KeyRule{"consumed-*", kIgnored, "length of the run"},
    KeyRule{"iteration", kIgnored, "length of the run"},
    KeyRule{"data-*", kIgnored, kData},
    KeyRule{"dataset-*", kIgnored, kData},
    KeyRule{"dataloader-type", kIgnored, kData},
    KeyRule{"split", kIgnored, kData},
    KeyRule{"vocab-*", kIgnored, kData},
    KeyRule{"merge-file", kIgnored, kData},
    KeyRule{"tokenizer-*", kIgnored, kData},
    KeyRule{"tiktoken-*", kIgnored, kData},
    KeyRule{"mock-data", kIgnored, kData},
    KeyRule{"num-workers", kIgnored, kData},
    KeyRule{"mmap-*", kIgnored, kData},
    KeyRule{"no-mmap-*", kIgnored, kData},
    KeyRule{"no-create-*", kIgnored, kData},
    KeyRule{"output*", kIgnored, kData},
    KeyRule{"sample*", kIgnored, kData},
    KeyRule{"reset-*", kIgnored, kData},
    KeyRule{"eod-*", kIgnored, kData},
    KeyRule{"save*", kIgnored, kCheckpoint},
    KeyRule{"load*", kIgnored, kCheckpoint},
    KeyRule{"no-load-*", kIgnored, kCheckpoint},
    KeyRule{"no-save-*", kIgnored, kCheckpoint},
    KeyRule{"ckpt-*", kIgnored, kCheckpoint},
    KeyRule{"dist-ckpt-*", kIgnored, kCheckpoint},
    KeyRule{"auto-detect-*", kIgnored, kCheckpoint},
    KeyRule{"async-save", kIgnored, kCheckpoint},
    KeyRule{"use-persistent-*", kIgnored, kCheckpoint},
    KeyRule{"universal-*", kIgnored, kCheckpoint},
    KeyRule{"finetune", kIgnored, kCheckpoint},
    KeyRule{"log*", kIgnored, kLogging},
    KeyRule{"tensorboard-*", kIgnored, kLogging},
    KeyRule{"wandb-*", kIgnored, kLogging},
    KeyRule{"timing-*", kIgnored, kLogging},
    KeyRule{"profile*", kIgnored, kLogging},
    KeyRule{"record-*", kIgnored, kLogging},
    KeyRule{"memory-snapshot-*", kIgnored, kLogging},
    KeyRule{"check-*", kIgnored, "a check, not work"},
    KeyRule{"no-check-*", kIgnored, "a check, not work"},
    KeyRule{"deterministic-mode", kIgnored, "which kernels run"},
    KeyRule{"manual-gc*", kIgnored, "pauses of the host are not modelled"},
    KeyRule{"empty-unused-*", kIgnored, "the allocator's cache"},
    KeyRule{"distributed-*", kIgnored, kLaunch},
    KeyRule{"use-mcore-models", kIgnored, "which code builds the model"},
    KeyRule{"use-legacy-models", kIgnored, "which code builds the model"},
    KeyRule{"transformer-impl", kIgnored, "which code builds the model"},
    KeyRule{"attention-backend", kIgnored, "flash attention"},
    KeyRule{"DDP-impl", kIgnored, "which code sums gradients"},
    KeyRule{"local-rank", kIgnored, kLaunch},
    KeyRule{"rank", kIgnored, kLaunch},
    KeyRule{"adlr-*", kIgnored, kLaunch},
    KeyRule{"node*", kIgnored, kLaunch},
    KeyRule{"master*", kIgnored, kLaunch},
    KeyRule{"nproc", kIgnored, kLaunch},
    KeyRule{"rdzv*", kIgnored, kLaunch},
    KeyRule{"max*", kIgnored, kLaunch},
    KeyRule{"tee", kIgnored, kLaunch},
    KeyRule{"wait", kIgnored, kLaunch},
    KeyRule{"kill-*", kIgnored, kLaunch},
    KeyRule{"job*", kIgnored, kLaunch},
    KeyRule{"mpi", kIgnored, kLaunch},
    KeyRule{"partition", kIgnored, kLaunch},
    KeyRule{"account", kIgnored, kLaunch},
    KeyRule{"time", kIgnored, kLaunch},
    KeyRule{"gres", kIgnored, kLaunch},
    KeyRule{"ntasks-*", kIgnored, kLaunch},
    KeyRule{"cpus-*", kIgnored, kLaunch},
    KeyRule{"container-*", kIgnored, kLaunch},
    KeyRule{"dependency", kIgnored, kLaunch},
    KeyRule{"exclusive", kIgnored, kLaunch},
    KeyRule{"constraint", kIgnored, kLaunch},
    KeyRule{"reservation", kIgnored, kLaunch},
    KeyRule{"qos", kIgnored, kLaunch},
    KeyRule{"hint", kIgnored, kLaunch},
    KeyRule{"capture-*", kIgnored, kLogging},
    KeyRule{"trace", kIgnored, kLogging},
    KeyRule{"cuda-memory-usage", kIgnored, kLogging},
    KeyRule{"cpuctxsw", kIgnored, kLogging},
    KeyRule{"abort-*", kIgnored, "a check, not work"},
    KeyRule{"sync-tp-*", kIgnored, "a check, not work"},
    KeyRule{"enable-experimental", kIgnored, "a check, not work"},
};

std::optional<std::int64_t> number_of(const SourceFile& source, const char* name) {
  const SourceKey* key = source.find(name);
  if (key == nullptr || key->value.find('$') != std::string::npos) return std::nullopt;
  return whole_number(*key);
}

// Defaults of Megatron where the file is silent: tied embeddings, biases, LayerNorm, learned positions, fp32.
void finish_shape(const SourceFile& source, TrainingImport& out) {
  if (!out.has("model.shape.layers")) return;
  const auto has = [&](const char* name) { return source.find(name) != nullptr; };
  const auto give = [&](const char* path, const std::string& value, const char* why) { out.settings.try_emplace(path, Setting{value, why, false}); };
  give("model.shape.tied_embeddings", has("untie-embeddings-and-output-weights") ? "false" : "true", "untie-embeddings-and-output-weights");
  give("model.shape.bias", has("disable-bias-linear") ? "false" : "true", "disable-bias-linear");
  if (out.has("model.shape.experts")) give("model.grouped_experts", has("moe-grouped-gemm") ? "true" : "false", "moe-grouped-gemm");
  give("model.shape.norm", "layernorm", "Megatron's default");
  give("model.shape.position", has("no-position-embedding") ? "rotary" : "learned", "Megatron's default");
  if (out.settings.at("model.shape.position").value != "learned") out.settings.erase("model.shape.max_positions");
  if (has("group-query-attention"))
    if (const auto groups = number_of(source, "num-query-groups")) out.settings["model.shape.kv_heads"] = {std::to_string(*groups), "num-query-groups", false};
  for (const char* name : {"pad-vocab-size-to", "padded-vocab-size", "vocab-size"}) {
    if (out.has("model.shape.vocab")) break;
    const SourceKey* key = source.find(name);
    if (key == nullptr || key->value.find_first_not_of("0123456789_") != std::string::npos) continue;
    out.settings["model.shape.vocab"] = {std::to_string(whole_number(*key)), name, false};
  }
  if (const auto shared = number_of(source, "moe-shared-expert-intermediate-size")) {
    const std::int64_t one = out.whole("model.shape.expert_ffn", out.whole("model.shape.ffn", 1));
    if (*shared % one == 0) {
      out.settings["model.shape.shared_experts"] = {std::to_string(*shared / one), "moe-shared-expert-intermediate-size", false};
    } else {
      out.remarks.push_back(fmt::format("a shared expert of {} is no multiple of expert_ffn {}: left out", *shared, one));
    }
  }
  if (out.has("model.shape.kv_lora_rank")) out.settings.erase("model.shape.head_dim");
  out.assume("model.shape.vocab", "51200", "the tokenizer's size is not in the file (GPT-2's, padded): --set model.shape.vocab=N");
}

void finish(const SourceFile& source, TrainingImport& out) {
  const auto has = [&](const char* name) { return source.find(name) != nullptr; };
  finish_shape(source, out);
  if (has("fp8-format")) out.settings["training.precision"] = {"fp8", "fp8-format", false};
  out.settings.try_emplace("training.precision", Setting{"fp32", "neither bf16 nor fp16", false});
  if (has("activations-checkpoint-method")) out.settings.try_emplace("memory.recompute", Setting{"full", "activations-checkpoint-method", false});
  if (has("use-distributed-optimizer")) out.settings.try_emplace("parallel.zero", Setting{"1", "use-distributed-optimizer", false});
  if (has("use-megatron-fsdp")) out.settings.try_emplace("parallel.zero", Setting{"3", "use-megatron-fsdp", false});
  const std::string recompute_word = out.has("memory.recompute") ? out.settings.at("memory.recompute").value : "none";
  if (recompute_word != "selective") out.settings.erase("memory.recompute_modules");
  if (recompute_word != "full")
    for (const char* path : {"memory.recompute_method", "memory.recompute_layers"}) out.settings.erase(path);
  out.settings.try_emplace("parallel.zero", Setting{"0", "no distributed optimizer", false});
  if (out.settings.at("training.precision").value != "fp8" || out.settings.at("parallel.zero").value == "0") out.settings.erase("parallel.fp8_param_gather");
  out.settings["parallel.overlap_grad_reduce"] = {has("overlap-grad-reduce") ? "true" : "false", "overlap-grad-reduce", false};
  if (out.settings.at("parallel.zero").value != "0")
    out.settings["parallel.overlap_param_gather"] = {has("overlap-param-gather") ? "true" : "false", "overlap-param-gather", false};
  if (out.whole("parallel.tp", 1) == 1 && out.settings.erase("parallel.sequence_parallel") > 0)
    out.remarks.emplace_back("sequence-parallel is without effect at tensor-model-parallel-size 1, as in Megatron");
  if (!out.has("parallel.sequence_parallel") && out.settings.erase("parallel.overlap_tensor_parallel") > 0)
    out.remarks.emplace_back("tp-comm-overlap is without effect without sequence parallelism, as in Megatron");
  if (const auto layers = number_of(source, "num-layers-per-virtual-pipeline-stage")) {
    const std::int64_t per_stage = out.whole("model.shape.layers", 0) / out.whole("parallel.pp", 1);
    if (per_stage > *layers && per_stage % *layers == 0) {
      out.settings["parallel.virtual_stages"] = {std::to_string(per_stage / *layers), "num-layers-per-virtual-pipeline-stage", false};
    } else if (per_stage != *layers) {
      out.remarks.emplace_back("num-layers-per-virtual-pipeline-stage does not divide the layers of a stage: one chunk a stage");
    }
  }
  if (out.whole("parallel.virtual_stages", 1) > 1) out.settings["parallel.schedule"] = {"interleaved", "virtual stages", false};
  if (!out.has("cluster.nodes"))
    for (const char* name : {"$NNODES", "$NUM_NODES"})
      if (const auto count = number_of(source, name)) out.settings["cluster.nodes"] = {std::to_string(*count), name, false};
  for (const char* name : {"nproc-per-node", "$GPUS_PER_NODE"})
    if (const auto count = number_of(source, name); count && *count != 8) out.settings["cluster.gpus_per_node"] = {std::to_string(*count), name, false};
  if (const auto world = number_of(source, "$WORLD_SIZE"); world && !out.has("cluster.nodes")) out.world = world;
}

}  // namespace

extern const TrainingForm kMegatron{"megatron", "Megatron-LM arguments", read_megatron_keys, kHandlers, kRules, finish};

}  // namespace stepcast::app
