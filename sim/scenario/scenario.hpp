// sim/scenario/scenario.hpp — what a scenario file says, as plain structs. Each struct lists its
// keys once, in visit(): that list reads the file, prints the effective scenario, writes the JSON
// Schema and the reference page. Defaults here are the defaults of the file.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/units.hpp"

namespace stepcast::scenario {

enum class Schedule : std::uint8_t { kGpipe, kOneFOneB };
enum class RecomputePolicy : std::uint8_t { kNone, kSelective, kFull };
enum class AttentionChoice : std::uint8_t { kFlash, kUnfused };
enum class Precision : std::uint8_t { kBf16, kFp16, kFp32, kTf32, kFp8 };
enum class GradientPrecision : std::uint8_t { kFp32, kBf16, kFp16 };
enum class FlopsConventionChoice : std::uint8_t { kMegatron, kPalm, kLlama };
enum class CollectiveAlgorithm : std::uint8_t { kAuto, kRing, kTree };

// Exactly one of `hf`, `preset`, `shape`.
struct InlineShape {
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::optional<std::int64_t> kv_heads;   // default heads
  std::optional<std::int64_t> head_dim;   // default hidden / heads
  std::optional<std::int64_t> ffn;        // default 4 * hidden
  std::int64_t vocab = 0;
  bool gated_mlp = false;
  bool tied_embeddings = false;
  bool bias = false;                      // linear layers carry biases
  std::string norm = "rmsnorm";           // layernorm | rmsnorm
  std::string position = "rotary";        // rotary | learned | alibi | none
  std::optional<std::int64_t> max_positions;
  std::optional<std::int64_t> sliding_window;
};

struct Model {
  std::optional<std::string> hf;          // path to a Hugging Face config.json
  std::optional<std::string> preset;      // name in the catalogue, e.g. llama3-8b
  std::optional<InlineShape> shape;
  std::int64_t sequence = 0;              // tokens per sample
  AttentionChoice attention = AttentionChoice::kFlash;
  FlopsConventionChoice flops_convention = FlopsConventionChoice::kMegatron;
  std::int64_t vocab_padding = 128;
  bool fused_kernels = true;
  double dropout = 0.0;
};

struct Fabric {
  std::string preset = "rail-clos";       // rail-clos | clos | clos-3tier | none (single node)
  std::optional<std::string> nic;         // catalogue name, e.g. ib-ndr-400; default: the node's own
  std::optional<std::int64_t> nics_per_node;  // default: the node's own
  double oversubscription = 1.0;          // leaf down-link over up-link capacity
  std::optional<std::int64_t> leaf_ports; // down-ports of a leaf switch
  std::optional<std::int64_t> nodes_per_pod;  // clos-3tier
  double core_oversubscription = 1.0;     // clos-3tier: pod to core
};

struct Cluster {
  std::int64_t nodes = 1;
  std::string node;                       // catalogue name, e.g. dgx-h100
  std::optional<std::int64_t> gpus_per_node;  // use fewer than the node has
  std::optional<std::string> gpu;         // replace the node's GPU by another of the catalogue
  std::optional<Fabric> fabric;           // required when nodes > 1
};

struct Parallel {
  std::int64_t tp = 1;
  std::int64_t pp = 1;
  std::int64_t dp = 1;
  std::int64_t cp = 1;                    // > 1 refused in this version
  std::int64_t ep = 1;                    // > 1 refused in this version
  Schedule schedule = Schedule::kOneFOneB;
  std::int64_t virtual_stages = 1;        // > 1 refused in this version
  bool sequence_parallel = false;
  std::int64_t zero = 0;                  // 0..3; 3 = FSDP full shard
  std::optional<std::int64_t> shard_group;  // ZeRO/FSDP group size; default dp
  std::string order = "tp-cp-ep-dp-pp";   // fastest-varying axis first
  bool overlap_grad_reduce = true;        // bucketed gradient reduction beside the backward pass
  bool overlap_param_gather = true;
  bool zero3_reshard_after_forward = true;
  std::int64_t prefetch = 1;              // layers gathered ahead (zero 3)
  Bytes bucket = Bytes{40'000'000 * 4};   // Megatron-Core: max(40M, 1M * dp) parameters, fp32
};

struct Batch {
  std::int64_t global = 0;                // sequences per step
  std::int64_t micro = 1;                 // sequences per micro-batch
};

struct MemoryPolicy {
  RecomputePolicy recompute = RecomputePolicy::kNone;
  GradientPrecision gradients = GradientPrecision::kFp32;  // accumulation and reduction
  bool fp32_master = true;                // fp32 master parameters beside low-precision ones
};

struct Training {
  Precision precision = Precision::kBf16;
  std::string optimizer = "adam";
};

struct Communication {
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::kAuto;
  std::optional<std::int64_t> channels;
};

struct Variant {
  std::string name;
  std::map<std::string, std::string> set; // dotted key -> YAML text of the value
};

struct Scenario {
  std::int64_t schema = 1;
  std::string name;
  std::string description;
  Model model;
  Cluster cluster;
  Parallel parallel;
  Batch batch;
  MemoryPolicy memory;
  Training training;
  Communication communication;
  std::optional<std::string> profile;     // calibration profile; default: the GPU's own
  std::int64_t seed = 1;
  std::vector<Variant> variants;
};

}  // namespace stepcast::scenario
