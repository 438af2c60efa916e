// models/parallel/strategy.hpp — how a model is cut over workers and run: degrees, schedule, where
// the states of training live, numerics. Plain values; a caller maps its own description to it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "models/parallel/schedule.hpp"
#include "models/workload/operators.hpp"
#include "sim/base/units.hpp"
#include "sim/plan/kernel.hpp"
#include "sim/plan/plan.hpp"

namespace stepcast::parallel {

enum class Optimizer : std::uint8_t { kAdam, kAdamW, kAdam8bit, kSgd, kAdafactor, kMuon };  // SGD with momentum

// A schedule that the user wrote: one list a stage, and how its chunks lie.
struct WrittenSchedule {
  Placement placement;
  std::vector<ActionList> lists;
};

// Which layers full recomputation is of, N = recompute_layers (Megatron-LM recompute_method; torchtitan).
enum class RecomputeSpan : std::uint8_t {
  kUniform,  // all; N in a row keep one input and are computed again together
  kBlock,    // the first N of each chunk of a stage
  kEvery,    // each N-th of the model
};

// When the host waits until the device has done what it was given, beside the end of the step.
enum class HostWaits : std::uint8_t {
  kNever,     // within a step: it runs ahead of the device
  kMessages,  // when a pass needs a message of another stage (Megatron-Core batch_p2p_sync)
  kPasses,    // also at the end of each pass (the timers of Megatron-LM up to v3.0: torch.cuda.synchronize)
  kGathers,   // before each gather of parameters, for everything on the device (DeepSpeed's ZeRO-3 of 2021: torch.cuda.synchronize)
  kGradients,  // after each reduction of gradients and their copy to host memory (a blocking copy, as of DeepSpeed's ZeRO-3)
  kKernels,   // also after each kernel and collective of a pass (CUDA_LAUNCH_BLOCKING=1): the device idles while the next is launched
};

// What lies in host memory rather than on the device (offload.hpp).
struct Offload {
  bool master = false;      // parameters as the optimizer keeps them
  bool momentum = false;
  bool variance = false;
  bool gradients = false;
  bool parameters = false;  // with zero 3: brought in unit by unit
  bool residuals = false;   // the input that each layer keeps
  bool update_on_host = false;  // the cores run the optimizer, whose gradients go there; else its states pass through the device
  bool shared = false;      // each GPU reads whole units from its host's memory, instead of a shard that is then gathered

  [[nodiscard]] bool states() const { return master || momentum || variance; }
  [[nodiscard]] bool any() const { return states() || gradients || parameters || residuals; }
};

struct Strategy {
  // Degrees. World size = tp * cp * pp * dp. Experts are dealt out over the same workers in their own way:
  // ep groups of etp workers lie within a stage's tp * cp * dp, and what is left of them are replicas.
  std::int32_t tp = 1;
  std::int32_t pp = 1;
  std::int32_t dp = 1;
  std::int32_t cp = 1;
  std::int32_t ep = 1;
  std::optional<std::int32_t> etp;        // empty: tp
  std::optional<std::int32_t> ep_within;  // ep ranks of one host: dispatch and combine in two levels
  plan::AxisOrder order = plan::kMegatronOrder;

  // Batch: sequences. Micro-batches per step = global_batch / (dp * micro_batch).
  std::int64_t global_batch = 1;
  std::int64_t micro_batch = 1;
  std::int64_t sequence = 0;  // tokens
  Schedule schedule = Schedule::kOneFOneB;
  std::int32_t virtual_stages = 1;             // chunks a stage, of 1F1B and interleaved
  std::optional<WrittenSchedule> written;      // of Schedule::kFile
  std::vector<std::int64_t> layers_per_stage;  // of each part of the model, in its order; empty: even
  bool sequence_parallel = false;  // without effect at tp = 1
  bool overlap_tensor_parallel = false;  // sequence parallelism's gathers and scatters run inside products

  // Long sequences and experts.
  workload::ContextStyle context_style = workload::ContextStyle::kRing;
  workload::Routing routing;
  std::optional<plan::Dtype> dispatch_dtype;  // of tokens on their way to experts; empty: dtype
  bool overlap_shared_experts = false;        // shared experts run beside dispatch and combine

  // ZeRO: 0 none; 1 optimizer states, 2 and gradients, 3 and parameters sharded over the data
  // and context axes, those of experts over their replicas.
  int zero = 0;
  // Gradients are summed over replicas after every micro-batch, rather than once a step; empty: where they are
  // sharded (zero 2 and 3), but with zero 3 not in a pipeline (torch/distributed/pipelining/stage.py). Without it
  // zero 2 and 3 hold whole gradients until the last micro-batch (FSDP no_sync).
  std::optional<bool> sync_every;
  bool fp8_gather = false;  // parameters of fp8 products are gathered in one byte
  std::optional<std::int32_t> shard_group;  // shard over blocks of this many data ranks; empty: dp
  bool overlap_grad_reduce = true;          // reduce gradients beside the backward pass
  bool overlap_param_gather = true;         // ZeRO-1/2: gather updated parameters beside the forward pass
  bool reshard_after_forward = true;        // ZeRO-3: free gathered parameters between the passes
  bool gather_by_matrix = false;            // ZeRO-3: a gather for each weight matrix of a unit, gradients in buckets (scatter_queue.hpp)
  std::int32_t prefetch = 1;                // ZeRO-3: units gathered ahead of their use
  Bytes bucket = Bytes{40'000'000 * 4};     // gradients of one bucket, in the gradients' dtype

  // Numerics.
  plan::Dtype dtype = plan::Dtype::kBf16;        // parameters and activations
  std::optional<plan::Dtype> gemm_dtype;         // of linear layers, e.g. fp8; empty: dtype
  plan::Dtype gradient_dtype = plan::Dtype::kFp32;
  std::optional<plan::Dtype> reduce_dtype;       // gradients on their way between replicas; empty: gradient_dtype
  bool fp32_master = true;                       // master parameters beside low-precision ones
  plan::Dtype state_dtype = plan::Dtype::kFp32;  // of the optimizer's moments
  Optimizer optimizer = Optimizer::kAdam;
  bool clip_gradients = true;
  std::optional<workload::Adapters> adapters;    // LoRA: these are trained, all else is frozen

  // Where DeepSpeed differs from Megatron-LM in what lives how long (runtime/pipe/engine.py, zero/stage_1_and_2.py,
  // fp16/fused_optimizer.py, bf16_optimizer.py).
  bool keeps_stage_outputs = false;     // until the micro-batch's backward pass (pipe_buffers)
  bool receives_ahead = false;          // buffers for all micro-batches' messages from the start (torch.distributed.pipelining stage.py)
  bool copies_into_buckets = false;     // gradients are flattened into a buffer to be reduced
  bool casts_gradients = false;         // 16-bit ones to fp32, all at once, for the update
  bool keeps_low_gradients = false;     // of the backward pass, beside fp32 sums
  bool gradients_in_parameters = false; // in the same memory (colossalai zero/gemini, reuse_fp16_chunk)
  bool keeps_buckets = false;           // a second copy of every gradient (torch DistributedDataParallel's reducer)

  Offload offload;

  HostWaits host_waits = HostWaits::kNever;

  // What a block runs and keeps (see workload::BlockOptions).
  workload::Recompute recompute = workload::Recompute::kNone;
  workload::RecomputeParts recompute_parts;
  RecomputeSpan recompute_span = RecomputeSpan::kUniform;
  std::int64_t recompute_layers = 1;
  workload::AttentionKernel attention = workload::AttentionKernel::kFlash;
  bool fused_kernels = true;
  bool fused_loss = true;
  int logit_copies = 0;
  bool fused_accumulation = true;
  bool grouped_experts = true;
  double dropout = 0.0;
  std::int64_t vocab_padding = 128;

  workload::FlopsConvention flops_convention = workload::FlopsConvention::kMegatron;
};

constexpr std::int64_t micro_batches(const Strategy& s) { return s.global_batch / (s.dp * s.micro_batch); }

// Requires: a schedule of a file is there.
inline Placement placement_of(const Strategy& s) {
  return s.schedule == Schedule::kFile ? s.written->placement : placement_of(s.schedule, s.pp, s.virtual_stages);
}
inline std::vector<ActionList> schedule_of(const Strategy& s) {
  return s.schedule == Schedule::kFile ? s.written->lists : make_schedule(s.schedule, placement_of(s), micro_batches(s));
}
// The plain pipelines, whose messages go as Megatron-LM sends them without interleaving.
inline bool is_plain(const Strategy& s) {
  return s.schedule == Schedule::kGpipe || (s.schedule == Schedule::kOneFOneB && s.virtual_stages == 1);
}

constexpr bool syncs_every(const Strategy& s) { return s.sync_every.value_or(s.zero == 2 || (s.zero == 3 && s.pp == 1)); }
// Only a shard of the gradients is held all the time. (Where zero 3 sums once a step, whole ones live from a unit's first
// backward pass to its last.)
constexpr bool shards_gradients(const Strategy& s) { return s.zero == 3 || (s.zero == 2 && syncs_every(s)); }
// Gradients are sent to the host as they are made: those that the device would keep only a shard of, or that nobody else has.
constexpr bool offloads_gradients(const Strategy& s) {
  const bool wanted = s.offload.gradients || s.offload.update_on_host;
  return wanted && (shards_gradients(s) || s.dp * s.cp == 1);
}
constexpr plan::Dtype reduce_dtype(const Strategy& s) { return s.reduce_dtype.value_or(s.gradient_dtype); }

// Workers that hold the same dense parameters, and those that hold the same experts.
constexpr std::int32_t expert_tensor(const Strategy& s) { return s.etp.value_or(s.tp); }
constexpr std::int32_t dense_replicas(const Strategy& s) { return s.dp * s.cp; }
constexpr std::int32_t expert_replicas(const Strategy& s) { return s.dp * s.cp * s.tp / (s.ep * expert_tensor(s)); }

// Parameters by what they are replicated over.
enum class Kind : std::uint8_t { kDense, kExpert };

// Workers that share one copy of what ZeRO shards; 1: nothing is sharded.
constexpr std::int32_t shard_size(const Strategy& s, Kind kind = Kind::kDense) {
  if (s.zero == 0) return 1;
  return kind == Kind::kExpert ? expert_replicas(s) : s.shard_group.value_or(dense_replicas(s));
}

// An fp32 copy of the parameters beside those kept in `dtype`.
constexpr bool has_master(const Strategy& s) {
  return s.fp32_master && plan::element_bytes(s.dtype) < plan::element_bytes(plan::Dtype::kFp32);
}

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace stepcast::parallel
