// Training configurations of four kinds, written by hand in each form, and what they become.
#include <doctest/doctest.h>

#include <algorithm>

#include <fmt/format.h>

#include "app/importers/training/training_import.hpp"
#include "sim/scenario/load.hpp"
#include "tests/support/source_dir.hpp"

namespace stepcast::app {
namespace {

const topology::Catalogue& catalogue() {
  static const topology::Catalogue loaded = topology::load_catalogue(STEPCAST_SOURCE_DIR "/topologies/data");
  return loaded;
}

TrainingImport import(const TrainingForm& form, const std::string& text, const std::vector<std::string>& sets = {}, const std::string& file = "config.x") {
  return import_training(form, text, file, sets, catalogue());
}

std::string value(const TrainingImport& import, const std::string& path) {
  const auto found = import.settings.find(path);
  return found == import.settings.end() ? "none" : found->second.value;
}

bool has_fate(const TrainingImport& import, const std::string& key, Fate fate) {
  return std::any_of(import.fates.begin(), import.fates.end(), [&](const KeyFate& f) { return f.key.name == key && f.fate == fate; });
}

scenario::Scenario load(const TrainingImport& import) {
  return scenario::load_scenario_text(scenario_text(import, "test", "test", "config.x"), "test.yaml").scenario;
}

std::string refusal(const TrainingForm& form, const std::string& text, const std::string& file = "config.x") {
  try {
    import(form, text, {}, file);
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_SUITE_BEGIN("unit");

// 32 sequences over dp 8 in 2 micro-batches: 2 sequences each. A comment, a comma too many, a float for a count.
TEST_CASE("training import: DeepSpeed fills in the micro-batch") {
  const TrainingImport read = import(kDeepSpeed, R"({
    // ZeRO-2
    "train_batch_size": 32, "gradient_accumulation_steps": 2,
    "zero_optimization": {"stage": 2, "reduce_bucket_size": 5e8, "overlap_comm": true, "offload_optimizer": {"device": "cpu"},},
    "bf16": {"enabled": true}, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}}, "novel_key": 1
  })");
  CHECK(value(read, "batch.micro") == "2");
  CHECK(value(read, "parallel.dp") == "8");
  CHECK(value(read, "parallel.zero") == "2");
  CHECK(value(read, "parallel.bucket") == "1000000000 B");
  CHECK(value(read, "memory.offload") == "[master, momentum, variance]");
  CHECK(has_fate(read, "optimizer.params.lr", Fate::kIgnored));
  CHECK(has_fate(read, "novel_key", Fate::kNotExpressed));
  const scenario::Scenario s = load(read);
  CHECK(s.batch.global == 32);
  CHECK(s.training.precision == scenario::Precision::kBf16);
  CHECK(s.parallel.bucket == Bytes{1'000'000'000});
}

TEST_CASE("training import: DeepSpeed's optimizer and parameters in host memory, but not in files") {
  const auto offload = [](const char* optimizer, const char* parameters) {
    return import(kDeepSpeed, fmt::format(R"({{"train_batch_size": 32, "zero_optimization": {{"stage": 3, "offload_optimizer": {{"device": "{}"}},
      "offload_param": {{"device": "{}", "pin_memory": true}}}}, "bf16": {{"enabled": true}}}})", optimizer, parameters));
  };
  const TrainingImport both = offload("cpu", "cpu");
  CHECK(value(both, "memory.offload") == "[master, momentum, variance, parameters]");
  CHECK(load(both).memory.offload.size() == 4);
  CHECK(value(both, "parallel.gather_by_matrix") == "true");
  CHECK(value(both, "training.host_waits") == "gradients");
  CHECK(value(offload("none", "cpu"), "memory.offload") == "[parameters]");
  CHECK_FALSE(offload("none", "none").has("memory.offload"));
  CHECK_FALSE(offload("none", "cpu").has("training.host_waits"));
  const TrainingImport whole = import(kDeepSpeed, R"({"train_batch_size": 32, "zero_optimization": {"stage": 2, "offload_param": {"device": "cpu"}}, "bf16": {"enabled": true}})");
  CHECK_FALSE(whole.has("memory.offload"));
  const TrainingImport files = offload("nvme", "none");
  CHECK_FALSE(files.has("memory.offload"));
  CHECK(has_fate(files, "zero_optimization.offload_optimizer.device", Fate::kNotExpressed));
}

TEST_CASE("training import: what is auto is left to defaults, and said") {
  const TrainingImport read = import(kDeepSpeed, R"({"train_batch_size": "auto", "bf16": {"enabled": "auto"}, "zero_optimization": {"stage": 3}})");
  CHECK(has_fate(read, "train_batch_size", Fate::kIgnored));
  CHECK(value(read, "training.precision") == "none");
  CHECK(value(read, "batch.global") == "8");
  CHECK(read.settings.at("batch.global").assumed);
  load(read);
}

TEST_CASE("training import: place-holders and documentation are refused where they stand") {
  CHECK(refusal(kDeepSpeed, "{\n  \"train_batch_size\": CONFIG_BATCH_SIZE\n}").find("config.x:2:3: error: train_batch_size") == 0);
  const std::string doc = refusal(kDeepSpeed, "{\"zero_optimization\": {\"stage\": [0|1|2|3]}}");
  CHECK(doc.find("documentation") != std::string::npos);
  CHECK(refusal(kDeepSpeed, "{\"zero_optimization\": {\"stage\": 4}}").find("one of 0, 1, 2, 3") != std::string::npos);
  CHECK(refusal(kTorchtitan, "[model\nname = 1").find("config.x:1:") == 0);
  CHECK(refusal(kMegatron, "echo hello").find("no argument") != std::string::npos);
}

// 16 processes, tp 2, two replicas of four shards: ZeRO-3 over groups of four.
TEST_CASE("training import: accelerate's hybrid sharding") {
  const TrainingImport read = import(kAccelerate,
                                     "distributed_type: FSDP\nmixed_precision: bf16\nnum_machines: 2\nnum_processes: 16\n"
                                     "fsdp_config:\n  fsdp_version: 2\n  fsdp_reshard_after_forward: false\n  fsdp_activation_checkpointing: true\n"
                                     "parallelism_config:\n  parallelism_config_dp_replicate_size: 2\n  parallelism_config_dp_shard_size: 4\n  parallelism_config_tp_size: 2\n");
  const scenario::Scenario s = load(read);
  CHECK(s.parallel.zero == 3);
  CHECK(s.parallel.dp == 8);
  CHECK(s.parallel.shard_group == 4);
  CHECK(s.parallel.tp == 2);
  CHECK_FALSE(s.parallel.zero3_reshard_after_forward);
  CHECK(s.memory.recompute == scenario::RecomputePolicy::kFull);
  CHECK(s.cluster.nodes == 2);
}

TEST_CASE("training import: accelerate's old names and numbers of strategies") {
  CHECK(value(import(kAccelerate, "distributed_type: FSDP\nmixed_precision: 'no'\nnum_processes: 8\nfsdp_config: {fsdp_sharding_strategy: 2}\n"), "parallel.zero3_reshard_after_forward") == "false");
  const TrainingImport plain = import(kAccelerate, "distributed_type: MULTI_GPU\nmixed_precision: 'no'\nnum_processes: 4\n");
  CHECK(value(plain, "parallel.zero") == "0");
  CHECK(value(plain, "training.precision") == "fp32");
  CHECK(value(plain, "cluster.gpus_per_node") == "4");
}

// 64 GPUs / (tp 8 x pp 2) = dp 4; 32 layers on 2 stages in chunks of 4: 4 chunks a stage.
TEST_CASE("training import: Megatron's script with variables, an array and continued lines") {
  const TrainingImport read = import(kMegatron, R"(#!/bin/bash
GPUS_PER_NODE=8
NNODES=8
WORLD_SIZE=$(($GPUS_PER_NODE*$NNODES))
TP=${TP:-8}
MODEL_ARGS=(
  --num-layers 32 --hidden-size 4096   # a comment
  --ffn-hidden-size 14336
  --num-attention-heads 32 --group-query-attention --num-query-groups 8
  --swiglu --normalization RMSNorm --position-embedding-type rope
  --untie-embeddings-and-output-weights --disable-bias-linear
)
torchrun --nproc_per_node $GPUS_PER_NODE pretrain_gpt.py ${MODEL_ARGS[@]} \
  --tensor-model-parallel-size $TP --pipeline-model-parallel-size 2 \
  --num-layers-per-virtual-pipeline-stage 4 --sequence-parallel \
  --micro-batch-size 1 --global-batch-size 128 --seq-length 4096 --vocab-size 128256 \
  --bf16 --use-distributed-optimizer --overlap-grad-reduce --lr 1e-4 --novel-flag 3
)");
  CHECK(value(read, "parallel.tp") == "8");
  CHECK(value(read, "parallel.dp") == "4");
  CHECK(value(read, "cluster.nodes") == "8");
  CHECK(value(read, "parallel.virtual_stages") == "4");
  CHECK(value(read, "parallel.zero") == "1");
  CHECK(value(read, "parallel.overlap_param_gather") == "false");
  CHECK(value(read, "model.shape.kv_heads") == "8");
  CHECK(value(read, "model.shape.vocab") == "128256");
  CHECK(value(read, "model.shape.tied_embeddings") == "false");
  CHECK(has_fate(read, "lr", Fate::kIgnored));
  CHECK(has_fate(read, "novel-flag", Fate::kNotExpressed));
}

TEST_CASE("training import: the list of arguments that a log prints") {
  const TrainingImport read = import(kMegatron,
                                     "using world size: 8\n------------ arguments ------------\n"
                                     "  bf16 ............................................ False\n  checkpoint_activations .......................... True\n"
                                     "  fp16 ............................................ True\n  global_batch_size ............................... 4\n"
                                     "  hidden_size ..................................... 1024\n  micro_batch_size ................................ 1\n"
                                     "  num_attention_heads ............................. 16\n  num_layers ...................................... 24\n"
                                     "  padded_vocab_size ............................... 50304\n  seq_length ...................................... 1024\n"
                                     "  tensor_model_parallel_size ...................... 2\n  world_size ...................................... 8\n");
  const scenario::Scenario s = load(read);
  CHECK(s.training.precision == scenario::Precision::kFp16);
  CHECK(s.memory.recompute == scenario::RecomputePolicy::kFull);
  CHECK(s.parallel.dp == 4);
  CHECK(s.model.shape->vocab == 50304);
  CHECK(s.model.shape->tied_embeddings);
}

// FSDP over what tp leaves of 16 GPUs; one local batch of 2 on each of 8 shards.
TEST_CASE("training import: torchtitan") {
  const TrainingImport read = import(kTorchtitan,
                                     "[model]\nname = \"llama3\"\nflavor = \"8B\"\nconverters = [\"float8\"]\n[training]\nlocal_batch_size = 2\nseq_len = 8192\n"
                                     "[parallelism]\ndata_parallel_shard_degree = -1\ntensor_parallel_degree = 2\n[activation_checkpoint]\nmode = \"selective\"\nselective_ac_option = \"op\"\n",
                                     {"cluster.nodes=2"});
  const scenario::Scenario s = load(read);
  CHECK(s.model.preset == "llama3-8b");
  CHECK(s.parallel.dp == 8);
  CHECK(s.parallel.zero == 3);
  CHECK(s.batch.global == 16);
  CHECK(s.training.precision == scenario::Precision::kFp8);
  CHECK(s.memory.recompute == scenario::RecomputePolicy::kOperators);
  CHECK(has_fate(read, "model.converters", Fate::kIgnored));
}

TEST_CASE("training import: recomputation by modules and by layers") {
  const std::string shape = "pretrain_gpt.py --num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 4096 --micro-batch-size 1 "
                            "--global-batch-size 8 --bf16 ";
  const scenario::Scenario modules = load(import(kMegatron, shape + "--recompute-granularity selective --recompute-modules mlp layernorm\n"));
  CHECK(modules.memory.recompute_modules == std::vector{scenario::RecomputeModule::kMlp, scenario::RecomputeModule::kNorms});
  const scenario::Scenario block = load(import(kMegatron, shape + "--recompute-granularity full --recompute-method block --recompute-num-layers 5\n"));
  CHECK(block.memory.recompute == scenario::RecomputePolicy::kFull);
  CHECK(block.memory.recompute_method == scenario::RecomputeMethod::kBlock);
  CHECK(block.memory.recompute_layers == 5);
  CHECK(load(import(kMegatron, shape + "--recompute-num-layers 5 --recompute-modules mlp\n")).memory.recompute == scenario::RecomputePolicy::kNone);
  const scenario::Scenario every = load(import(kTorchtitan,
                                               "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nlocal_batch_size = 1\nseq_len = 8192\n"
                                               "[activation_checkpoint]\nmode = \"selective\"\nselective_ac_option = \"2\"\n"));
  CHECK(every.memory.recompute == scenario::RecomputePolicy::kFull);
  CHECK(every.memory.recompute_method == scenario::RecomputeMethod::kEvery);
  CHECK(every.memory.recompute_layers == 2);
}

TEST_CASE("training import: experts run one after another unless their products are grouped") {
  const std::string shape = "pretrain_gpt.py --num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 4096 --micro-batch-size 1 "
                            "--global-batch-size 8 --bf16 ";
  CHECK_FALSE(load(import(kMegatron, shape + "--num-experts 8 --moe-router-topk 2\n")).model.grouped_experts);
  const TrainingImport grouped = import(kMegatron, shape + "--num-experts 8 --moe-router-topk 2 --moe-grouped-gemm\n");
  CHECK(load(grouped).model.grouped_experts);
  CHECK(has_fate(grouped, "moe-grouped-gemm", Fate::kUnderstood));
  CHECK_FALSE(import(kMegatron, shape + "\n").has("model.grouped_experts"));
}

TEST_CASE("training import: formats of gradients, moments and gathers") {
  const std::string shape = "pretrain_gpt.py --num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 4096 --micro-batch-size 1 "
                            "--global-batch-size 8 --bf16 --use-distributed-optimizer ";
  const scenario::Scenario s = load(import(kMegatron, shape + "--fp8-format hybrid --fp8-param-gather --use-precision-aware-optimizer --exp-avg-dtype bf16 "
                                                              "--exp-avg-sq-dtype bf16 --main-grads-dtype bf16\n"));
  CHECK(s.parallel.fp8_param_gather);
  CHECK(s.memory.optimizer_states == scenario::StatePrecision::kBf16);
  CHECK(s.memory.gradients == scenario::GradientPrecision::kBf16);
  CHECK_FALSE(load(import(kMegatron, shape + "--fp8-param-gather\n")).parallel.fp8_param_gather);  // no product in fp8
  const TrainingImport deepspeed = import(kDeepSpeed, R"({"train_batch_size": 64, "bf16": {"enabled": true}, "communication_data_type": "fp32",
      "data_types": {"grad_accum_dtype": "bf16"}})", {"model.preset=llama3-8b", "model.sequence=4096", "cluster.nodes=1"});
  CHECK(value(deepspeed, "memory.gradients") == "bf16");
  CHECK(value(deepspeed, "memory.reduce_gradients") == "fp32");
}

TEST_CASE("training import: --set comes before what the file says") {
  const TrainingImport read = import(kDeepSpeed, R"({"train_batch_size": 64, "bf16": {"enabled": true}})",
                                     {"batch.global=128", "cluster.node=dgx-a100", "cluster.nodes=2", "model.preset=llama3-70b", "parallel.tp=8"});
  const scenario::Scenario s = load(read);
  CHECK(s.batch.global == 128);
  CHECK(s.parallel.dp == 2);
  CHECK(s.cluster.fabric.has_value());
  CHECK(s.model.preset == "llama3-70b");
}

}  // namespace stepcast::app
