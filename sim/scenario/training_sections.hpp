// sim/scenario/training_sections.hpp — how the model is cut and trained: the sections `parallel:`,
// `batch:`, `memory:`, `training:` and `communication:`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/scenario/key.hpp"
#include "sim/scenario/words.hpp"

namespace stepcast::scenario {

struct Parallel {
  std::int64_t tp = 1;
  std::int64_t pp = 1;
  std::int64_t dp = 1;
  std::int64_t cp = 1;
  ContextChoice cp_style = ContextChoice::kRing;
  std::int64_t ep = 1;
  std::optional<std::int64_t> etp;        // default tp
  std::optional<std::int64_t> ep_within;
  bool fp8_dispatch = false;
  bool overlap_shared_experts = false;
  Schedule schedule = Schedule::kOneFOneB;
  std::optional<std::string> schedule_file;
  std::int64_t virtual_stages = 1;
  std::vector<std::int64_t> layers_per_stage;
  bool sequence_parallel = false;
  bool overlap_tensor_parallel = false;
  std::int64_t zero = 0;
  std::optional<bool> sync_every_micro_batch;  // default: zero 2, zero 3 outside a pipeline
  bool fp8_param_gather = false;
  std::optional<std::int64_t> shard_group;  // default dp
  std::string order = "tp-cp-ep-dp-pp";
  bool overlap_grad_reduce = true;
  bool overlap_param_gather = true;
  bool zero3_reshard_after_forward = true;
  std::int64_t prefetch = 1;
  bool gather_by_matrix = false;
  std::int64_t copies_per_shard = 0;
  std::int64_t copies_per_gathered_shard = 0;
  Bytes bucket = Bytes{40'000'000 * 4};   // Megatron-Core: max(40M, 1M * dp) parameters, fp32

  template <class V>
  void visit(V& v) {
    v.key("tp", tp, "Tensor parallel size: GPUs that share every layer.", between(1, 1e6).example("8"));
    v.key("pp", pp, "Pipeline parallel size: stages the layers are cut into.", between(1, 1e6));
    v.key("dp", dp, "Data parallel size: replicas that each take a part of the batch.", between(1, 1e6));
    v.key("cp", cp, "Context parallel size: GPUs that each hold a part of every sequence.", between(1, 1e6));
    v.key("cp_style", cp_style,
          "How attention sees the other parts: ring passes keys and values on beside the attention (balanced by holding "
          "an early and a late part; plain-ring: one part each), all-gather collects them first, ulysses trades sequence for heads.");
    v.key("ep", ep, "Expert parallel size: groups of GPUs that the experts are dealt out over, within tp x cp x dp.",
          between(1, 1e6));
    v.key("etp", etp, "Expert tensor parallel size: GPUs that share every expert. Default: tp.", between(1, 1e6).example("1"));
    v.key("ep_within", ep_within,
          "GPUs of an expert-parallel group that share a host: a token crosses to each host once and is passed on inside "
          "(DeepEP). Default: one all-to-all over all of them.", between(1, 1e6).example("8"));
    v.key("fp8_dispatch", fp8_dispatch, "Tokens travel to experts, and gradients back to them, in fp8.");
    v.key("overlap_shared_experts", overlap_shared_experts, "Shared experts run beside the exchanges with routed experts.");
    v.key("schedule", schedule,
          "Order of forward and backward passes in the pipeline (docs/guide/schedules.md); file: as schedule_file says.");
    v.key("schedule_file", schedule_file, "A schedule written by hand, one list of passes a stage.",
          not_empty().example("my_schedule.txt"));
    v.key("virtual_stages", virtual_stages,
          "Model chunks of a pipeline stage. Above 1 with schedule 1f1b or interleaved: interleaved 1F1B.", between(1, 255));
    v.key("layers_per_stage", layers_per_stage,
          "Layers of each part of the model, pp x virtual_stages numbers in the model's order. Default: even, the ends shorter.",
          between(0, 1e6).example("[3, 5, 5, 3]"));
    v.key("sequence_parallel", sequence_parallel,
          "Norms and dropout are split along the sequence over the tp GPUs; needs tp above 1.");
    v.key("overlap_tensor_parallel", overlap_tensor_parallel,
          "Gathers and scatters of sequence parallelism run inside the products beside them (user buffers, --tp-comm-overlap).");
    v.key("zero", zero,
          "What data-parallel replicas shard: 0 nothing, 1 optimizer states, 2 and gradients, 3 and parameters (FSDP).",
          between(0, 3));
    v.key("sync_every_micro_batch", sync_every_micro_batch,
          "Gradients are summed over replicas after every micro-batch, not once a step (no_sync). Default: true with zero 2, and with "
          "zero 3 outside a pipeline, which hold whole gradients without it.", example("false"));
    v.key("fp8_param_gather", fp8_param_gather, "zero 1 to 3 with fp8 products: their weights are gathered in one byte.");
    v.key("shard_group", shard_group, "Replicas that a shard is spread over (hybrid sharding); divides dp x cp. Default: all of them.",
          between(1, 1e6).example("8"));
    v.key("order", order, "Which axis varies fastest over GPU numbers, first to last: all five, joined by '-'.",
          not_empty());
    v.key("overlap_grad_reduce", overlap_grad_reduce, "Gradients are reduced in buckets beside the backward pass.");
    v.key("overlap_param_gather", overlap_param_gather, "Sharded parameters are gathered beside the forward pass.");
    v.key("zero3_reshard_after_forward", zero3_reshard_after_forward,
          "zero 3: parameters are freed after the forward pass and gathered again for the backward pass.");
    v.key("prefetch", prefetch, "zero 3: layers gathered ahead of the one that runs.", between(0, 1000));
    v.key("gather_by_matrix", gather_by_matrix,
          "zero 3: a gather for each weight matrix, as DeepSpeed's modules ask for them, rather than one for each layer; and gradients are "
          "reduced in buckets, a larger matrix and what lies between two of them by itself.");
    v.key("copies_per_shard", copies_per_shard,
          "Kernels that a framework runs for each rank's part of each reduce-scatter of gradients, where it makes a list of them "
          "(DeepSpeed's ZeRO-3 of early 2022: 2).", between(0, 16).example("2"));
    v.key("copies_per_gathered_shard", copies_per_gathered_shard, "The same of each gather of parameters (DeepSpeed's ZeRO-3 of 2021: 1).", between(0, 16).example("1"));
    v.key("bucket", bucket, "Gradient bytes reduced in one collective.", above(0));
  }
  friend bool operator==(const Parallel&, const Parallel&) = default;
};

struct Batch {
  std::int64_t global = 0;
  std::int64_t micro = 1;

  template <class V>
  void visit(V& v) {
    v.key("global", global, "Sequences in one step, over all replicas.", required().between(1, 1e9).example("64"));
    v.key("micro", micro, "Sequences in one micro-batch of one replica.", between(1, 1e6));
  }
  friend bool operator==(const Batch&, const Batch&) = default;
};

struct MemoryPolicy {
  RecomputePolicy recompute = RecomputePolicy::kNone;
  std::vector<RecomputeModule> recompute_modules{RecomputeModule::kCoreAttention};
  RecomputeMethod recompute_method = RecomputeMethod::kUniform;
  std::int64_t recompute_layers = 1;
  GradientPrecision gradients = GradientPrecision::kFp32;
  std::optional<GradientPrecision> reduce_gradients;  // default: gradients
  StatePrecision optimizer_states = StatePrecision::kFp32;
  bool fp32_master = true;
  std::optional<std::int64_t> logit_copies;  // default 0 with a fused loss, else 1
  std::optional<Bytes> library_workspace;    // default by GPU
  std::optional<Bytes> context;              // default by GPU
  bool expandable_segments = false;
  std::vector<OffloadedPart> offload;
  std::optional<UpdatePlace> offload_update;  // default host, where master, momentum and variance are there
  bool offload_shared = false;

  template <class V>
  void visit(V& v) {
    v.key("recompute", recompute,
          "Activations computed again in the backward pass: none, selective (recompute_modules), operators (all but attention and "
          "every second matrix product, as torchtitan's selective op) or full (whole layers).");
    v.key("recompute_modules", recompute_modules,
          "recompute selective: what of each layer, in Megatron-Core's words core_attn, layernorm, mla_up_proj, moe_act, mlp, moe, "
          "shared_experts, and mlp_act, qkv_proj, attention, up_proj. Default: core_attn.",
          not_empty().example("[core_attn]"));
    v.key("recompute_method", recompute_method,
          "recompute full: uniform (all layers, recompute_layers of them together), block (the first recompute_layers of each stage "
          "or chunk) or every (each recompute_layers-th layer).");
    v.key("recompute_layers", recompute_layers, "The number that recompute_method speaks of.", between(1, 1e5));
    v.key("gradients", gradients, "Number format in which gradients are accumulated and reduced.");
    v.key("reduce_gradients", reduce_gradients, "Number format in which they travel between replicas. Default: that of gradients.", example("fp32"));
    v.key("optimizer_states", optimizer_states, "Number format of the optimizer's moments (adam, adamw, sgd, muon).");
    v.key("fp32_master", fp32_master, "The optimizer keeps fp32 parameters beside low-precision ones.");
    v.key("logit_copies", logit_copies,
          "fp32 copies of the logits that the loss holds beside its softmax. Default: 0 with model.fused_loss, else 1.",
          between(0, 4).example("0"));
    v.key("library_workspace", library_workspace,
          "Device memory that matrix libraries work in, all handles together. Default: two of the profile's gemm_workspace, "
          "for the forward pass's thread and the backward pass's.", above(0).example("64 MiB"));
    v.key("expandable_segments", expandable_segments,
          "The framework's allocator grows its segments instead of adding more (PyTorch expandable_segments): nothing is lost between blocks.");
    v.key("offload", offload,
          "What lies in host memory: master (the optimizer's parameters), momentum, variance, gradients, parameters (zero 3, brought in layer "
          "by layer) and residuals (what each layer keeps of its input). Default: nothing.", example("[master, momentum, variance]"));
    v.key("offload_update", offload_update,
          "Where the optimizer runs on what is offloaded: host, on the cores, with gradients sent there (ZeRO-Offload), or device, through "
          "which states pass layer by layer. Default: host, where master, momentum and variance are all offloaded.");
    v.key("offload_shared", offload_shared,
          "GPUs of a host read whole layers from its memory, rather than a shard each that is then gathered (threads of one process).");
    v.key("context", context,
          "Device memory of the CUDA context and the libraries' code. Default: the profile's, of libraries that load a kernel on first "
          "use (CUDA 11.7 and up); before that about 1.3 GiB.", above(0).example("1343 MiB"));
  }
  friend bool operator==(const MemoryPolicy&, const MemoryPolicy&) = default;
};

// Low-rank adapters are trained, the model is frozen.
struct Lora {
  std::int64_t rank = 16;
  std::vector<AdapterTarget> targets{AdapterTarget::kQkv, AdapterTarget::kOut, AdapterTarget::kUp, AdapterTarget::kDown};
  AdapterBase base = AdapterBase::kAsTrained;
  bool double_quant = true;

  template <class V>
  void visit(V& v) {
    v.key("rank", rank, "Rank of the adapters; a multiple of parallel.tp.", between(1, 1e5).example("16"));
    v.key("targets", targets,
          "Matrices of each layer that have adapters: qkv (with latents: into and out of them), out, up (with the gate), down. Default: all four.",
          not_empty().example("[qkv, out]"));
    v.key("base", base,
          "How the frozen matrices of layers are stored: as-trained (training.precision), or nf4 (QLoRA: 4 bits, brought back to "
          "16 before each product).");
    v.key("double_quant", double_quant, "nf4: the scales of its blocks are quantised again, 0.516 bytes a parameter rather than 0.5625.");
  }
  friend bool operator==(const Lora&, const Lora&) = default;
};

struct Training {
  Precision precision = Precision::kBf16;
  OptimizerChoice optimizer = OptimizerChoice::kAdam;
  std::optional<Lora> lora;
  EngineChoice engine = EngineChoice::kMegatron;
  HostWaitChoice host_waits = HostWaitChoice::kNever;

  template <class V>
  void visit(V& v) {
    v.key("precision", precision, "Number format of parameters, activations and matrix products.");
    v.key("optimizer", optimizer,
          "The optimizer: what it keeps for each parameter, and its update (models/parallel/optimizer.hpp has both).");
    v.key("lora", lora, "Fine-tuning of low-rank adapters on a frozen model (LoRA, QLoRA). Default: everything is trained.");
    v.key("engine", engine,
          "Whose training loop decides what lives how long: deepspeed keeps a stage's outputs until their backward pass, copies "
          "gradients into buckets, casts 16-bit gradients to fp32 for the update, and keeps them beside fp32 sums; ddp keeps every "
          "gradient a second time in its buckets (PyTorch's, gradient_as_bucket_view off); torch, PyTorch's pipelining, keeps outputs as well "
          "and has memory for what it will receive of all micro-batches; gemini, ColossalAI's, puts gradients where parameters were.");
    v.key("host_waits", host_waits,
          "When the host waits for the device within a step, rather than run ahead of it: never; messages, after each message of the pipeline "
          "(Megatron-Core without overlap_p2p_comm); passes, also after each forward and backward pass (Megatron-LM up to v3.0 with its timers); gathers, before each gather of parameters (DeepSpeed's ZeRO-3 of 2021); "
          "gradients, after each reduction of gradients and their copy to host memory (DeepSpeed's ZeRO-3 with "
          "an optimizer there); kernels, "
          "after each kernel and collective of a pass (CUDA_LAUNCH_BLOCKING=1), so that the device idles while the next is launched.");
  }
  friend bool operator==(const Training&, const Training&) = default;
};

struct Communication {
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::kAuto;
  CollectiveProtocol protocol = CollectiveProtocol::kAuto;
  std::optional<std::int64_t> channels;
  std::optional<std::string> nccl;

  template <class V>
  void visit(V& v) {
    v.key("algorithm", algorithm, "Algorithm of collectives; auto picks the fastest by size. One that cannot make a collective is left aside for it; collnet and hierarchical are used only when named; pairwise and pxn are of all-to-all, send and receive.");
    v.key("protocol", protocol, "Protocol of collectives; auto picks the fastest by size.");
    v.key("channels", channels, "Channels (thread blocks) a collective uses. Default: by hardware.",
          between(1, 64).example("16"));
    v.key("nccl", nccl, "Release of NCCL, which decides what it has and, before 2.5, how it chooses. Default: 2.26.",
          words({"2.4", "2.5", "2.6", "2.7", "2.8", "2.9", "2.10", "2.11", "2.12", "2.13", "2.14", "2.15", "2.16", "2.17", "2.18",
                 "2.19", "2.20", "2.21", "2.22", "2.23", "2.24", "2.25", "2.26", "2.27", "2.28", "2.29", "2.30"}).example("2.18"));
  }
  friend bool operator==(const Communication&, const Communication&) = default;
};

}  // namespace stepcast::scenario
