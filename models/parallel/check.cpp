#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "models/parallel/planner.hpp"

namespace stepcast::parallel {
namespace {

class Problems {
 public:
  void add(std::string path, std::string other, std::string problem, std::string expected, std::string got) {
    list_.push_back({std::move(path), std::move(other), std::move(problem), std::move(expected), std::move(got)});
  }
  void positive(const char* path, std::int64_t value) {
    if (value < 1) add(path, "", fmt::format("{} is not positive", value), "at least 1", fmt::format("{}", value));
  }
  [[nodiscard]] bool empty() const { return list_.empty(); }
  [[nodiscard]] std::vector<StrategyError> take() { return std::move(list_); }

 private:
  std::vector<StrategyError> list_;
};

void check_ranges(const Strategy& s, Problems& problems) {
  problems.positive("parallel.tp", s.tp);
  problems.positive("parallel.pp", s.pp);
  problems.positive("parallel.dp", s.dp);
  problems.positive("parallel.cp", s.cp);
  problems.positive("parallel.ep", s.ep);
  if (s.etp) problems.positive("parallel.etp", *s.etp);
  if (s.routing.capacity_factor && !(*s.routing.capacity_factor > 0))
    problems.add("model.capacity_factor", "", "experts that take no token", "above 0", "");
  if (s.routing.skew < 0) problems.add("model.expert_skew", "", "a negative skew", "0 or more", "");
  problems.positive("batch.global", s.global_batch);
  problems.positive("batch.micro", s.micro_batch);
  problems.positive("model.sequence", s.sequence);
  problems.positive("parallel.virtual_stages", s.virtual_stages);
  if (s.virtual_stages > 255)
    problems.add("parallel.virtual_stages", "", "too many chunks on a stage", "at most 255", fmt::format("{}", s.virtual_stages));
  problems.positive("parallel.bucket", s.bucket.count());
  problems.positive("model.vocab_padding", s.vocab_padding);
  if (s.zero < 0 || s.zero > 3)
    problems.add("parallel.zero", "", fmt::format("there is no ZeRO stage {}", s.zero), "0, 1, 2 or 3",
                 fmt::format("{}", s.zero));
  if (s.prefetch < 0)
    problems.add("parallel.prefetch", "", "units cannot be gathered less than none ahead", "0 or more",
                 fmt::format("{}", s.prefetch));
  if (s.shard_group) problems.positive("parallel.shard_group", *s.shard_group);
  if (s.gradient_dtype == plan::Dtype::kFp8)
    problems.add("memory.gradients", "", "gradients are not accumulated in fp8", "one of bf16, fp16, fp32", "fp8");
  if (s.dtype == plan::Dtype::kFp8)
    problems.add("training.precision", "", "parameters and activations are not kept in fp8",
                 "16-bit or wider storage, fp8 for linear layers only", "fp8");
  plan::AxisOrder sorted = s.order;
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    if (static_cast<std::size_t>(sorted[i]) == i) continue;
    problems.add("parallel.order", "", "an axis is missing or named twice", "each of tp, cp, ep, dp, pp once", "");
    break;
  }
}

// value is a multiple of divisor, or an error that names both.
void divides(std::int64_t divisor, const char* path, std::int64_t value, const char* other, const char* what,
             Problems& problems) {
  if (value % divisor == 0) return;
  problems.add(path, other, fmt::format("{} does not divide {}", divisor, what),
               fmt::format("a divisor of {} ({})", value, other), fmt::format("{}", divisor));
}

bool has_dense_layers(const workload::ModelShape& shape) {
  for (std::int64_t layer = 0; layer < shape.layers; ++layer)
    if (!has_experts(shape, layer)) return true;
  return false;
}

void check_tensor(const workload::ModelShape& shape, const Strategy& s, Problems& problems) {
  divides(s.tp, "parallel.tp", shape.heads, "model.heads", "attention heads", problems);
  if (shape.kv_heads % s.tp != 0 && s.tp % shape.kv_heads != 0) {
    problems.add("parallel.tp", "model.kv_heads",
                 fmt::format("{} neither divides nor is a multiple of the key/value heads", s.tp),
                 fmt::format("a divisor or a multiple of {} (model.kv_heads)", shape.kv_heads),
                 fmt::format("{}", s.tp));
  }
  if (has_dense_layers(shape)) divides(s.tp, "parallel.tp", shape.ffn, "model.ffn", "the width of the MLP", problems);
  if (s.sequence_parallel && s.sequence % (std::int64_t{s.cp} * s.tp) != 0) {
    problems.add("parallel.tp", "model.sequence", "sequence parallelism cuts the sequence unevenly",
                 fmt::format("tp {} x cp {} to divide {} (model.sequence)", s.tp, s.cp, s.sequence), fmt::format("{}", s.tp));
  }
  if (s.tp > 1 && !s.sequence_parallel && (shape.experts || shape.latent)) {
    problems.add("parallel.sequence_parallel", "parallel.tp",
                 shape.experts ? "tensor-parallel ranks would all send the same tokens to the experts"
                               : "tensor-parallel ranks would all compute the same latents",
                 fmt::format("true with parallel.tp {}", s.tp), "false");
  }
}

void check_context(const workload::ModelShape& shape, const Strategy& s, Problems& problems) {
  if (s.cp == 1) return;
  using workload::ContextStyle;
  const bool ring = s.context_style == ContextStyle::kRing || s.context_style == ContextStyle::kPlainRing;
  const std::int64_t parts = s.context_style == ContextStyle::kRing || s.context_style == ContextStyle::kAllGather ? 2 : 1;
  if (s.sequence % (parts * s.cp) != 0) {
    problems.add("parallel.cp", "model.sequence", "the sequence is cut unevenly",
                 fmt::format("{}cp to divide {} (model.sequence)", parts == 2 ? "2 x " : "", s.sequence), fmt::format("{}", s.cp));
  }
  if (s.attention == workload::AttentionKernel::kUnfused) {
    problems.add("parallel.cp", "model.attention", "unfused attention over context-parallel ranks is not modelled",
                 "model.attention flash, or parallel.cp 1", fmt::format("{}", s.cp));
  }
  if (ring && shape.sliding_window && *shape.sliding_window < s.sequence) {
    problems.add("parallel.cp_style", "model.sliding_window", "a ring does not know sliding windows",
                 "all-gather or ulysses, or no model.sliding_window", "ring");
  }
  if (s.context_style == ContextStyle::kUlysses) {
    const std::int64_t most = std::int64_t{s.cp} * s.tp;
    for (const auto& [heads, path] : {std::pair{shape.heads, "model.heads"}, std::pair{shape.kv_heads, "model.kv_heads"}}) {
      if (heads % most == 0) continue;
      problems.add("parallel.cp", path, fmt::format("{} heads do not split over tp {} x cp {} ranks", heads, s.tp, s.cp),
                   fmt::format("parallel.tp x parallel.cp to divide {} ({})", heads, path), fmt::format("{}", s.cp));
    }
  }
}

void check_experts(const workload::ModelShape& shape, const Strategy& s, Problems& problems) {
  if (!shape.experts) {
    if (s.ep > 1) problems.add("parallel.ep", "model.experts", "a dense model has no experts to deal out", "1, or a model with experts", fmt::format("{}", s.ep));
    if (s.ep_within) problems.add("parallel.ep_within", "model.experts", "a dense model has no experts to deal out", "no such key, or a model with experts", fmt::format("{}", *s.ep_within));
    if (s.etp) problems.add("parallel.etp", "model.experts", "a dense model has no experts to cut", "no such key, or a model with experts", fmt::format("{}", *s.etp));
    return;
  }
  const workload::ExpertShape& e = *shape.experts;
  divides(s.ep, "parallel.ep", e.count, "model.experts", "the experts", problems);
  if (s.ep_within && (*s.ep_within < 1 || s.ep % *s.ep_within != 0))
    problems.add("parallel.ep_within", "parallel.ep", fmt::format("{} ranks cannot be cut into hosts of {}", s.ep, *s.ep_within),
                 fmt::format("a divisor of {} (parallel.ep)", s.ep), fmt::format("{}", *s.ep_within));
  const std::int64_t etp = expert_tensor(s);
  if (s.etp || s.tp > 1) divides(etp, s.etp ? "parallel.etp" : "parallel.tp", e.ffn, "model.expert_ffn", "the width of an expert", problems);
  const std::int64_t workers = std::int64_t{s.tp} * s.cp * s.dp;
  if (workers % (s.ep * etp) != 0) {
    problems.add("parallel.ep", s.etp ? "parallel.etp" : "parallel.dp",
                 fmt::format("ep {} x etp {} does not divide the workers of a stage", s.ep, etp),
                 fmt::format("a divisor of {} (tp {} x cp {} x dp {})", workers, s.tp, s.cp, s.dp), fmt::format("{}", s.ep * etp));
  }
  if (etp > s.tp && etp % s.tp != 0)
    problems.add("parallel.etp", "parallel.tp", "neither a divisor nor a multiple of tp", fmt::format("a divisor or a multiple of {} (parallel.tp)", s.tp), fmt::format("{}", etp));
  if (s.shard_group && *s.shard_group < s.dp * s.cp) {
    problems.add("parallel.shard_group", "model.experts", "shard groups beside experts, which have replicas of their own, are not modelled",
                 "no such key with a mixture of experts", fmt::format("{}", *s.shard_group));
  }
}

void check_recompute(const workload::ModelShape& shape, const Strategy& s, Problems& problems) {
  using workload::Recompute;
  problems.positive("memory.recompute_layers", s.recompute_layers);
  if (s.recompute == Recompute::kFull && s.recompute_span == RecomputeSpan::kUniform && s.recompute_layers > 1 && s.zero == 3) {
    problems.add("memory.recompute_layers", "parallel.zero", "layers computed again together, each gathered for that and again for its gradients, are not modelled",
                 "1 with parallel.zero 3", fmt::format("{}", s.recompute_layers));
  }
  const workload::RecomputeParts& parts = s.recompute_parts;
  if (s.recompute == Recompute::kSelective && shape.latent && (parts.qkv || parts.attention)) {
    problems.add("memory.recompute_modules", "model.kv_lora_rank", "latent attention has no such part",
                 "mla_up_proj in place of qkv_proj and attention", parts.qkv ? "qkv_proj" : "attention");
  }
  if (s.recompute == Recompute::kSelective && shape.parallel_block && (parts.mlp || parts.up || parts.qkv || parts.attention)) {
    problems.add("memory.recompute_modules", "", "attention and MLP side by side in a block cannot be computed again apart",
                 "core_attn, layernorm or mlp_act, or memory.recompute full", "a model with parallel blocks");
  }
  if (s.recompute != Recompute::kOperators) return;
  const bool unfused = s.attention == workload::AttentionKernel::kUnfused;
  if (shape.latent || shape.experts || shape.parallel_block || unfused) {
    problems.add("memory.recompute", unfused ? "model.attention" : shape.experts ? "model.experts" : "", "recomputation by operator is of dense layers with fused attention",
                 "selective with memory.recompute_modules, or full", "operators");
  }
}

void check_vision(const workload::ModelShape& shape, const Strategy& s, Problems& problems) {
  if (!has_images(shape)) return;
  const workload::VisionTower& v = *shape.vision;
  if (v.image_size % v.patch != 0 || v.patches() % v.merged != 0 || v.patches() == 0) {
    problems.add("model.image_size", "", fmt::format("{} pixels do not make whole patches of {}, {} of them a token", v.image_size, v.patch, v.merged),
                 fmt::format("a multiple of {}", v.pooled ? v.patch : v.patch * static_cast<std::int64_t>(std::llround(std::sqrt(static_cast<double>(v.merged))))),
                 fmt::format("{}", v.image_size));
    return;
  }
  if (v.images * v.tokens() > s.sequence) {
    problems.add("model.images", "model.sequence", fmt::format("{} images of {} tokens are more than a sequence", v.images, v.tokens()),
                 fmt::format("at most {} in {} tokens (model.sequence)", s.sequence / v.tokens(), s.sequence), fmt::format("{}", v.images));
  }
  if (v.heads % s.tp != 0 || v.ffn % s.tp != 0) {
    problems.add("parallel.tp", "model.hf", fmt::format("{} does not divide the vision encoder's {} heads and width of {}", s.tp, v.heads, v.ffn),
                 "a divisor of both", fmt::format("{}", s.tp));
  }
  if (s.cp > 1)
    problems.add("model.images", "parallel.cp", "images over context-parallel ranks are not modelled", "parallel.cp 1, or 0 images", fmt::format("cp {}", s.cp));
  if (s.adapters)
    problems.add("model.images", "training.lora", "a vision encoder beside adapters is not modelled", "0 images, or no training.lora", fmt::format("{}", v.images));
}

void check_adapters(const workload::ModelShape& shape, const Strategy& s, Problems& problems) {
  if (!s.adapters) return;
  const workload::Adapters& a = *s.adapters;
  problems.positive("training.lora.rank", a.rank);
  if (!(a.qkv || a.out || a.up || a.down))
    problems.add("training.lora.targets", "", "adapters on nothing: nothing would be trained", "at least one of qkv, out, up, down", "none");
  if (a.rank % s.tp != 0) {
    problems.add("training.lora.rank", "parallel.tp", fmt::format("a rank of {} cannot be cut over {} tensor-parallel ranks", a.rank, s.tp),
                 fmt::format("a multiple of {} (parallel.tp)", s.tp), fmt::format("{}", a.rank));
  }
  if (shape.experts && (a.up || a.down) && expert_tensor(s) > 1) {
    problems.add("training.lora.targets", s.etp ? "parallel.etp" : "parallel.tp", "adapters on experts that several ranks share are not modelled",
                 "parallel.etp 1, or neither up nor down", fmt::format("etp {}", expert_tensor(s)));
  }
  if (shape.predicted_ahead > 0) {
    problems.add("model.mtp_layers", "training.lora", "prediction modules beside adapters are not modelled", "0 with training.lora",
                 fmt::format("{}", shape.predicted_ahead));
  }
  if (a.base && s.gemm_dtype == plan::Dtype::kFp8) {
    problems.add("training.lora.base", "training.precision", "a 4-bit base is brought back to 16 bits, not to fp8", "training.precision bf16 or fp16", "nf4 with fp8");
  }
  if (a.base && plan::element_bytes(s.dtype) > 2) {
    problems.add("training.lora.base", "training.precision", "a 4-bit base is brought back to 16 bits", "training.precision bf16 or fp16", plan::name_of(s.dtype));
  }
}

// What a schedule asks of stages, chunks and micro-batches.
void check_schedule(const Strategy& s, Problems& problems) {
  const char* const word = name_of(s.schedule);
  const std::int64_t m = s.global_batch / (std::int64_t{s.dp} * s.micro_batch);
  const std::string micro_batches = fmt::format("{} micro-batches (batch.global {} / (parallel.dp {} x batch.micro {}))", m,
                                                s.global_batch, s.dp, s.micro_batch);
  const auto needs = [&](const char* path, const char* other, std::string problem, std::string expected, std::string got) {
    problems.add(path, other, std::move(problem), std::move(expected), std::move(got));
  };
  const bool interleaves = s.schedule == Schedule::kInterleaved || s.schedule == Schedule::kOneFOneB;
  const bool two_chunks = s.schedule != Schedule::kFile && placement_of(s.schedule, s.pp, 1).chunks == 2;
  const std::int32_t fixed = two_chunks ? 2 : 1;
  if (!interleaves && s.schedule != Schedule::kFile && s.virtual_stages != 1 && s.virtual_stages != fixed) {
    needs("parallel.virtual_stages", "parallel.schedule", fmt::format("schedule {} has {} on each stage", word, two_chunks ? "two chunks" : "one chunk"),
          fmt::format("{}, or schedule interleaved", fixed), fmt::format("{}", s.virtual_stages));
  }
  if (s.schedule == Schedule::kInterleaved && s.virtual_stages < 2) {
    needs("parallel.schedule", "parallel.virtual_stages", "an interleaved schedule needs chunks to interleave",
          "parallel.virtual_stages 2 or more, or schedule 1f1b", fmt::format("virtual_stages {}", s.virtual_stages));
  }
  if (s.pp == 1 && (s.virtual_stages > 1 || two_chunks)) {
    needs(s.virtual_stages > 1 ? "parallel.virtual_stages" : "parallel.schedule", "parallel.pp",
          "one stage has no pipeline to cut finer", "parallel.pp 2 or more, or schedule 1f1b without virtual_stages", "parallel.pp 1");
  } else if (interleaves && s.virtual_stages > 1 && m < s.pp) {
    needs("parallel.virtual_stages", "batch.global", "interleaving needs at least as many micro-batches as stages",
          fmt::format("{} (parallel.pp) or more micro-batches", s.pp), micro_batches);
  }
  if (s.schedule == Schedule::kDualPipe && s.pp % 2 != 0) {
    needs("parallel.schedule", "parallel.pp", "dualpipe pairs the stages of both halves", "an even parallel.pp",
          fmt::format("parallel.pp {}", s.pp));
  }
  const bool dual = s.schedule == Schedule::kDualPipe || s.schedule == Schedule::kDualPipeV;
  if (dual && (m < 2 * s.pp || (s.schedule == Schedule::kDualPipe && m % 2 != 0))) {
    needs("parallel.schedule", "batch.global", fmt::format("schedule {} needs more micro-batches to fill both directions", word),
          fmt::format("at least {} (2 x parallel.pp){}", 2 * s.pp, s.schedule == Schedule::kDualPipe ? ", an even number" : ""),
          micro_batches);
  }
  // Passes that give both gradients, one at a time.
  const bool whole_passes = s.schedule == Schedule::kGpipe || s.schedule == Schedule::kOneFOneB || s.schedule == Schedule::kOneFOneBOverlap ||
                            s.schedule == Schedule::kInterleaved;
  if ((s.zero >= 2 || syncs_every(s)) && !whole_passes) {
    const bool by_zero = s.zero >= 2;
    needs(by_zero ? "parallel.zero" : "parallel.sync_every_micro_batch", "parallel.schedule",
          fmt::format("{} needs passes that give both gradients, which schedule {} takes apart", by_zero ? fmt::format("zero {}", s.zero) : "summing after every micro-batch", word),
          by_zero ? "parallel.zero 0 or 1, or schedule 1f1b, interleaved or gpipe" : "false, or schedule 1f1b, interleaved or gpipe",
          by_zero ? fmt::format("parallel.zero {}", s.zero) : "true");
  }
}

// A part without layers must at least embed or compute the loss.
void check_layers(const workload::ModelShape& shape, const Strategy& s, Problems& problems) {
  const Placement placement = placement_of(s);
  const auto parts = static_cast<std::size_t>(placement.positions());
  const std::vector<std::int64_t>& list = s.layers_per_stage;
  const bool chunked = placement.positions() > s.pp;
  if (list.empty()) {
    if (chunked && placement.positions() > shape.layers + 2) {
      problems.add("parallel.virtual_stages", "model.layers",
                   fmt::format("{} stages of {} chunks leave chunks without layers", s.pp, placement.chunks),
                   fmt::format("at most {} chunks in all (model.layers and the embedding and the loss)", shape.layers + 2),
                   fmt::format("{}", parts));
    }
    return;
  }
  if (list.size() != parts) {
    problems.add("parallel.layers_per_stage", "parallel.pp", "not one number for each part of the model",
                 fmt::format("{} numbers ({} stages x {} chunks)", parts, s.pp, placement.positions() / s.pp),
                 fmt::format("{}", list.size()));
    return;
  }
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    sum += list[i];
    if (list[i] > 0 || (list[i] == 0 && (i == 0 || i + 1 == list.size()))) continue;
    problems.add("parallel.layers_per_stage", "", fmt::format("part {} would be empty", i),
                 "at least one layer; the first and the last may have none", fmt::format("{}", list[i]));
    return;
  }
  if (sum != shape.layers) {
    problems.add("parallel.layers_per_stage", "model.layers", "not all layers, or too many",
                 fmt::format("numbers that add up to {} (model.layers)", shape.layers), fmt::format("{}", sum));
  }
}

void check_pipeline(const workload::ModelShape& shape, const Strategy& s, Problems& problems) {
  if (s.pp > shape.layers && s.layers_per_stage.empty()) {
    problems.add("parallel.pp", "model.layers", fmt::format("{} stages for {} layers leave stages empty", s.pp, shape.layers),
                 fmt::format("at most {} (model.layers)", shape.layers), fmt::format("{}", s.pp));
  }
}

void check_batch(const Strategy& s, Problems& problems) {
  const std::int64_t together = s.dp * s.micro_batch;
  if (s.global_batch % together != 0) {
    problems.add("batch.global", s.micro_batch > 1 ? "batch.micro" : "parallel.dp",
                 fmt::format("{} sequences cannot be dealt out to {} data-parallel ranks in micro-batches of {}",
                             s.global_batch, s.dp, s.micro_batch),
                 fmt::format("a multiple of {} (parallel.dp {} x batch.micro {})", together, s.dp, s.micro_batch),
                 fmt::format("{}", s.global_batch));
  } else if (micro_batches(s) > std::numeric_limits<std::uint16_t>::max()) {
    problems.add("batch.global", "batch.micro", "too many micro-batches in one step",
                 fmt::format("at most {}", std::numeric_limits<std::uint16_t>::max()),
                 fmt::format("{}", micro_batches(s)));
  }
}

// A layer's passes of one micro-batch are about 50 instructions of about 100 bytes: 2.5 GB of plan at this limit.
void check_size(const workload::ModelShape& shape, const Strategy& s, Problems& problems) {
  constexpr std::int64_t kMost = 500'000;
  if (s.global_batch % (s.dp * s.micro_batch) != 0) return;
  if (shape.layers <= kMost / micro_batches(s)) return;
  problems.add("batch.global", "model.layers", "the plan of one step would be too long",
               fmt::format("layers x micro-batches of a replica at most {}", kMost),
               fmt::format("{} layers x {} micro-batches", shape.layers, micro_batches(s)));
}

void check_formats(const Strategy& s, Problems& problems) {
  const bool moments = s.optimizer != Optimizer::kAdam8bit && s.optimizer != Optimizer::kAdafactor;
  if (s.state_dtype != plan::Dtype::kFp32 && !moments) {
    problems.add("memory.optimizer_states", "training.optimizer", "this optimizer's states have a format of their own", "fp32, or adam, adamw, sgd or muon",
                 plan::name_of(s.state_dtype));
  }
  if (s.fp8_gather && (s.gemm_dtype != plan::Dtype::kFp8 || s.zero == 0)) {
    const bool precision = s.gemm_dtype != plan::Dtype::kFp8;
    problems.add("parallel.fp8_param_gather", precision ? "training.precision" : "parallel.zero",
                 precision ? "no product runs in fp8" : "no parameters are gathered", precision ? "training.precision fp8, or false" : "parallel.zero 1, 2 or 3, or false", "true");
  }
}

void check_gathers(const Strategy& s, Problems& problems) {
  if (s.gather_by_matrix && s.zero != 3)
    problems.add("parallel.gather_by_matrix", "parallel.zero", "no parameters are gathered for each use", "parallel.zero 3, or false", fmt::format("zero {}", s.zero));
  if ((s.host_waits == HostWaits::kGradients || s.host_waits == HostWaits::kGathers) && s.zero != 3)
    problems.add("training.host_waits", "parallel.zero", "nothing is gathered or reduced block by block", "parallel.zero 3, or another wait", fmt::format("zero {}", s.zero));
}

void check_offload(const Strategy& s, Problems& problems) {
  const Offload& o = s.offload;
  if (!o.any()) {
    if (o.shared || o.update_on_host)
      problems.add(o.shared ? "memory.offload_shared" : "memory.offload_update", "memory.offload", "nothing is offloaded", "memory.offload", "");
    return;
  }
  if (o.parameters && s.zero != 3)
    problems.add("memory.offload", "parallel.zero", "parameters come from the host unit by unit, as with zero 3", "parallel.zero 3, or no parameters in the list", fmt::format("zero {}", s.zero));
  if (o.shared && !o.parameters)
    problems.add("memory.offload_shared", "memory.offload", "no parameters lie in host memory to be read by other GPUs", "parameters in memory.offload, or false", "true");
  if (o.update_on_host && !(o.master && o.momentum && o.variance))
    problems.add("memory.offload", "memory.offload_update", "the host's cores update what lies in its memory", "all of master, momentum and variance, or offload_update device", "");
  if (s.optimizer != Optimizer::kAdam && s.optimizer != Optimizer::kAdamW)
    problems.add("memory.offload", "training.optimizer", "offload is of Adam's states", "training.optimizer adam or adamw", "");
  if (s.adapters) problems.add("memory.offload", "training.lora", "offload beside adapters is not modelled", "no training.lora", "");
  const bool whole_passes = s.schedule == Schedule::kGpipe || s.schedule == Schedule::kOneFOneB || s.schedule == Schedule::kInterleaved;
  if (!whole_passes)
    problems.add("memory.offload", "parallel.schedule", "offload needs passes that give both gradients, one at a time", "parallel.schedule 1f1b, interleaved or gpipe", name_of(s.schedule));
}

void check_data(const workload::ModelShape& shape, const Strategy& s, Problems& problems) {
  if (s.shard_group) {
    if (s.zero == 0) {
      problems.add("parallel.shard_group", "parallel.zero", "a shard group without anything sharded",
                   "parallel.zero 1, 2 or 3", "parallel.zero 0");
    } else if (s.dp * s.cp % *s.shard_group != 0 || (*s.shard_group == 1 && s.dp * s.cp > 1)) {
      problems.add("parallel.shard_group", "parallel.dp",
                   fmt::format("{} data-parallel ranks cannot be cut into shard groups of {}", s.dp, *s.shard_group),
                   fmt::format("a divisor of {} (parallel.dp){}", s.dp, s.dp > 1 ? ", at least 2" : ""),
                   fmt::format("{}", *s.shard_group));
    }
  }
  if (s.zero >= 2 && s.pp > 1 && !s.adapters && (shape.tied_embeddings || shape.predicted_ahead > 0)) {
    problems.add("parallel.zero", "model.tied_embeddings",
                 "the tied embedding's gradient, sharded differently on the first and the last stage, cannot be summed",
                 "parallel.zero 0 or 1, or parallel.pp 1", fmt::format("parallel.zero {}, parallel.pp {}", s.zero, s.pp));
  }
}

void check_sequence(const workload::ModelShape& shape, const Strategy& s, Problems& problems) {
  if (shape.position == workload::Position::kLearned && s.sequence > shape.max_positions) {
    problems.add("model.sequence", "model.max_positions",
                 fmt::format("{} tokens exceed the table of learned positions", s.sequence),
                 fmt::format("at most {} (model.max_positions)", shape.max_positions), fmt::format("{}", s.sequence));
  }
}

}  // namespace

std::vector<StrategyError> check(const workload::ModelShape& shape, const Strategy& strategy) {
  Problems problems;
  check_ranges(strategy, problems);
  if (!problems.empty()) return problems.take();  // the rest divides by these
  check_tensor(shape, strategy, problems);
  check_context(shape, strategy, problems);
  check_experts(shape, strategy, problems);
  check_adapters(shape, strategy, problems);
  check_vision(shape, strategy, problems);
  check_recompute(shape, strategy, problems);
  check_pipeline(shape, strategy, problems);
  check_batch(strategy, problems);
  if (problems.empty()) check_schedule(strategy, problems);
  if (problems.empty()) check_layers(shape, strategy, problems);
  if (problems.empty()) check_size(shape, strategy, problems);
  check_data(shape, strategy, problems);
  check_gathers(strategy, problems);
  check_offload(strategy, problems);
  check_formats(strategy, problems);
  check_sequence(shape, strategy, problems);
  return problems.take();
}

}  // namespace stepcast::parallel
