#include "app/scenario/model_choice.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "models/parallel/planner.hpp"
#include "models/parallel/schedule_file.hpp"
#include "models/workload/hf_config.hpp"
#include "models/workload/presets.hpp"
#include "sim/base/file.hpp"
#include "sim/base/text.hpp"

namespace stepcast::app {
namespace {

workload::Position position_of(const std::string& word) {
  if (word == "learned") return workload::Position::kLearned;
  if (word == "alibi") return workload::Position::kAlibi;
  if (word == "none") return workload::Position::kNone;
  return workload::Position::kRotary;
}

void add_experts(const scenario::InlineShape& written, workload::ModelShape& shape) {
  const std::int64_t width = written.expert_ffn.value_or(shape.ffn);
  shape.experts = workload::ExpertShape{
      .count = *written.experts, .top_k = written.top_k, .ffn = width, .shared_ffn = written.shared_experts * width};
  for (std::int64_t i = 0; i < shape.layers; ++i)
    shape.layer_has_experts.push_back(i >= written.dense_layers && (i - written.dense_layers + 1) % written.moe_every == 0);
}

workload::ModelShape inline_shape(const scenario::InlineShape& written, const scenario::Scenario& scenario) {
  workload::ModelShape shape;
  shape.name = scenario.name;
  shape.layers = written.layers;
  shape.hidden = written.hidden;
  shape.heads = written.heads;
  shape.kv_heads = written.kv_heads.value_or(written.heads);
  shape.head_dim = written.head_dim.value_or(written.hidden / written.heads);
  shape.ffn = written.ffn.value_or(4 * written.hidden);
  shape.vocab = written.vocab;
  shape.gated_mlp = written.gated_mlp;
  shape.tied_embeddings = written.tied_embeddings;
  shape.attention_bias = written.bias;
  shape.mlp_bias = written.bias;
  shape.norm = written.norm == "layernorm" ? workload::NormKind::kLayerNorm : workload::NormKind::kRmsNorm;
  shape.activation = written.gated_mlp ? workload::Activation::kSilu : workload::Activation::kGelu;
  shape.position = position_of(written.position);
  if (shape.position == workload::Position::kLearned) {
    shape.max_positions = written.max_positions.value_or(scenario.model.sequence);
  }
  shape.sliding_window = written.sliding_window;
  shape.qk_norm = written.qk_norm;
  if (written.full_attention_every)
    for (std::int64_t i = 0; i < shape.layers; ++i) shape.layer_is_sliding.push_back((i + 1) % *written.full_attention_every != 0);
  if (written.experts) add_experts(written, shape);
  if (written.kv_lora_rank) {
    shape.latent = workload::LatentAttention{.q_rank = written.q_lora_rank.value_or(0),
                                             .kv_rank = *written.kv_lora_rank,
                                             .nope_dim = written.qk_nope_head_dim,
                                             .rope_dim = written.qk_rope_head_dim,
                                             .value_dim = written.v_head_dim};
    shape.head_dim = written.qk_nope_head_dim + written.qk_rope_head_dim;
  }
  return shape;
}

plan::AxisOrder order_of(const std::string& text) {
  plan::AxisOrder order{};
  const std::vector<std::string> words = split(text, '-');
  for (std::size_t i = 0; i < order.size() && i < words.size(); ++i) {
    if (words[i] == "tp") order[i] = plan::Axis::kTensor;
    if (words[i] == "cp") order[i] = plan::Axis::kContext;
    if (words[i] == "ep") order[i] = plan::Axis::kExpert;
    if (words[i] == "dp") order[i] = plan::Axis::kData;
    if (words[i] == "pp") order[i] = plan::Axis::kPipeline;
  }
  return order;
}

workload::ContextStyle context_style_of(scenario::ContextChoice choice) {
  switch (choice) {
    case scenario::ContextChoice::kRing: return workload::ContextStyle::kRing;
    case scenario::ContextChoice::kPlainRing: return workload::ContextStyle::kPlainRing;
    case scenario::ContextChoice::kAllGather: return workload::ContextStyle::kAllGather;
    case scenario::ContextChoice::kUlysses: return workload::ContextStyle::kUlysses;
  }
  return workload::ContextStyle::kRing;
}

plan::Dtype storage_dtype(scenario::Precision precision) {
  switch (precision) {
    case scenario::Precision::kBf16: return plan::Dtype::kBf16;
    case scenario::Precision::kFp16: return plan::Dtype::kFp16;
    case scenario::Precision::kFp32: return plan::Dtype::kFp32;
    case scenario::Precision::kTf32: return plan::Dtype::kTf32;
    case scenario::Precision::kFp8: return plan::Dtype::kBf16;  // fp8 in the linear layers only
  }
  return plan::Dtype::kBf16;
}

plan::Dtype gradient_dtype(scenario::GradientPrecision precision) {
  switch (precision) {
    case scenario::GradientPrecision::kFp32: return plan::Dtype::kFp32;
    case scenario::GradientPrecision::kBf16: return plan::Dtype::kBf16;
    case scenario::GradientPrecision::kFp16: return plan::Dtype::kFp16;
  }
  return plan::Dtype::kFp32;
}

plan::Dtype state_dtype(scenario::StatePrecision precision) {
  switch (precision) {
    case scenario::StatePrecision::kFp32: return plan::Dtype::kFp32;
    case scenario::StatePrecision::kBf16: return plan::Dtype::kBf16;
    case scenario::StatePrecision::kFp16: return plan::Dtype::kFp16;
    case scenario::StatePrecision::kFp8: return plan::Dtype::kFp8;
  }
  return plan::Dtype::kFp32;
}

parallel::Optimizer optimizer_of(scenario::OptimizerChoice choice) {
  switch (choice) {
    case scenario::OptimizerChoice::kAdam: return parallel::Optimizer::kAdam;
    case scenario::OptimizerChoice::kAdamW: return parallel::Optimizer::kAdamW;
    case scenario::OptimizerChoice::kAdam8bit: return parallel::Optimizer::kAdam8bit;
    case scenario::OptimizerChoice::kSgd: return parallel::Optimizer::kSgd;
    case scenario::OptimizerChoice::kAdafactor: return parallel::Optimizer::kAdafactor;
    case scenario::OptimizerChoice::kMuon: return parallel::Optimizer::kMuon;
  }
  return parallel::Optimizer::kAdam;
}

workload::Adapters adapters_of(const scenario::Lora& lora) {
  const auto on = [&](scenario::AdapterTarget target) {
    return std::find(lora.targets.begin(), lora.targets.end(), target) != lora.targets.end();
  };
  workload::Adapters adapters{.rank = lora.rank,
                              .qkv = on(scenario::AdapterTarget::kQkv),
                              .out = on(scenario::AdapterTarget::kOut),
                              .up = on(scenario::AdapterTarget::kUp),
                              .down = on(scenario::AdapterTarget::kDown),
                              .base = std::nullopt};
  if (lora.base == scenario::AdapterBase::kNf4) adapters.base = workload::FourBits{lora.double_quant};
  return adapters;
}

workload::Recompute recompute_of(scenario::RecomputePolicy policy) {
  switch (policy) {
    case scenario::RecomputePolicy::kNone: return workload::Recompute::kNone;
    case scenario::RecomputePolicy::kSelective: return workload::Recompute::kSelective;
    case scenario::RecomputePolicy::kOperators: return workload::Recompute::kOperators;
    case scenario::RecomputePolicy::kFull: return workload::Recompute::kFull;
  }
  return workload::Recompute::kNone;
}

workload::RecomputeParts recompute_parts_of(const std::vector<scenario::RecomputeModule>& modules) {
  workload::RecomputeParts parts;
  parts.attention_core = false;
  for (const scenario::RecomputeModule module : modules) {
    switch (module) {
      case scenario::RecomputeModule::kCoreAttention: parts.attention_core = true; break;
      case scenario::RecomputeModule::kNorms: parts.norms = true; break;
      case scenario::RecomputeModule::kLatents: parts.latents = true; break;
      case scenario::RecomputeModule::kExpertActivations: parts.expert_activations = true; break;
      case scenario::RecomputeModule::kMlpActivations: parts.mlp_activations = true; break;
      case scenario::RecomputeModule::kQkv: parts.qkv = true; break;
      case scenario::RecomputeModule::kAttention: parts.attention = true; break;
      case scenario::RecomputeModule::kUp: parts.up = true; break;
      case scenario::RecomputeModule::kMlp: parts.mlp = true; break;
      case scenario::RecomputeModule::kExperts: parts.experts = true; break;
      case scenario::RecomputeModule::kShared: parts.shared = true; break;
    }
  }
  return parts;
}

parallel::RecomputeSpan recompute_span_of(scenario::RecomputeMethod method) {
  switch (method) {
    case scenario::RecomputeMethod::kUniform: return parallel::RecomputeSpan::kUniform;
    case scenario::RecomputeMethod::kBlock: return parallel::RecomputeSpan::kBlock;
    case scenario::RecomputeMethod::kEvery: return parallel::RecomputeSpan::kEvery;
  }
  return parallel::RecomputeSpan::kUniform;
}

workload::FlopsConvention convention_of(scenario::FlopsConventionChoice choice) {
  switch (choice) {
    case scenario::FlopsConventionChoice::kMegatron: return workload::FlopsConvention::kMegatron;
    case scenario::FlopsConventionChoice::kPalm: return workload::FlopsConvention::kPalm;
    case scenario::FlopsConventionChoice::kLlama: return workload::FlopsConvention::kLlama;
  }
  return workload::FlopsConvention::kMegatron;
}

parallel::Schedule schedule_of(scenario::Schedule schedule) {
  switch (schedule) {
    case scenario::Schedule::kGpipe: return parallel::Schedule::kGpipe;
    case scenario::Schedule::kOneFOneB: return parallel::Schedule::kOneFOneB;
    case scenario::Schedule::kOneFOneBOverlap: return parallel::Schedule::kOneFOneBOverlap;
    case scenario::Schedule::kInterleaved: return parallel::Schedule::kInterleaved;
    case scenario::Schedule::kZbH1: return parallel::Schedule::kZbH1;
    case scenario::Schedule::kZbH2: return parallel::Schedule::kZbH2;
    case scenario::Schedule::kZbV: return parallel::Schedule::kZbV;
    case scenario::Schedule::kVHalf: return parallel::Schedule::kVHalf;
    case scenario::Schedule::kVMin: return parallel::Schedule::kVMin;
    case scenario::Schedule::kDualPipe: return parallel::Schedule::kDualPipe;
    case scenario::Schedule::kDualPipeV: return parallel::Schedule::kDualPipeV;
    case scenario::Schedule::kFile: return parallel::Schedule::kFile;
  }
  return parallel::Schedule::kOneFOneB;
}

parallel::HostWaits host_waits_of(scenario::HostWaitChoice choice) {
  switch (choice) {
    case scenario::HostWaitChoice::kNever: return parallel::HostWaits::kNever;
    case scenario::HostWaitChoice::kMessages: return parallel::HostWaits::kMessages;
    case scenario::HostWaitChoice::kPasses: return parallel::HostWaits::kPasses;
    case scenario::HostWaitChoice::kGathers: return parallel::HostWaits::kGathers;
    case scenario::HostWaitChoice::kGradients: return parallel::HostWaits::kGradients;
    case scenario::HostWaitChoice::kKernels: return parallel::HostWaits::kKernels;
  }
  return parallel::HostWaits::kNever;
}

// The planner speaks of model.heads; an inline shape has it at model.shape.heads.
std::string written_path(const std::string& path, const scenario::Loaded& loaded) {
  const std::string inside = path.starts_with("model.") ? "model.shape." + path.substr(6) : path;
  return loaded.where.given(inside) ? inside : path;
}

Diagnostic diagnose(const parallel::StrategyError& error, const scenario::Loaded& loaded) {
  std::string hint;
  const std::string other = written_path(error.other_path, loaded);
  if (!error.other_path.empty() && loaded.where.given(other)) hint = "see " + loaded.where.cite(other);
  return loaded.where.error(written_path(error.path, loaded), error.problem, error.expected, error.got, hint);
}

}  // namespace

namespace {

workload::ModelShape named_model(const scenario::Loaded& loaded) {
  const scenario::Model& model = loaded.scenario.model;
  if (model.preset) {
    return workload::find_preset(*model.preset, loaded.where.of("model.preset"), "model.preset").shape;
  }
  if (model.hf) {
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(*model.hf, ignored)) {
      throw UserError(loaded.where.error("model.hf", "no such file", "a Hugging Face config.json", *model.hf));
    }
    return workload::load_hf_config(*model.hf);
  }
  return inline_shape(model.shape.value(), loaded.scenario);
}

}  // namespace

namespace {

void pick_images(const scenario::Loaded& loaded, workload::ModelShape& shape) {
  const scenario::Model& model = loaded.scenario.model;
  if (model.images == 0) return shape.vision.reset();
  if (!shape.vision) {
    throw UserError(loaded.where.error("model.images", "no vision encoder is known of this model", "a config.json of Qwen3-VL, Gemma 3 or Llama 4 (model.hf), or 0",
                                       fmt::format("{}", model.images)));
  }
  shape.vision->images = model.images;
  if (model.image_size) shape.vision->image_size = *model.image_size;
  if (shape.vision->image_size == 0)
    throw UserError(loaded.where.error("model.image_size", "the encoder takes images of any size", "pixels of an image's side", ""));
  shape.note = fmt::format("{} images of {} tokens a sequence", shape.vision->images, shape.vision->tokens());
}

}  // namespace

workload::ModelShape pick_model(const scenario::Loaded& loaded) {
  workload::ModelShape shape = named_model(loaded);
  shape.predicted_ahead = loaded.scenario.model.mtp_layers;
  pick_images(loaded, shape);
  return shape;
}

namespace {

parallel::Offload offload_of(const scenario::MemoryPolicy& memory) {
  using scenario::OffloadedPart;
  const auto there = [&](OffloadedPart part) { return std::find(memory.offload.begin(), memory.offload.end(), part) != memory.offload.end(); };
  parallel::Offload offload{.master = there(OffloadedPart::kMaster),
                            .momentum = there(OffloadedPart::kMomentum),
                            .variance = there(OffloadedPart::kVariance),
                            .gradients = there(OffloadedPart::kGradients),
                            .parameters = there(OffloadedPart::kParameters),
                            .residuals = there(OffloadedPart::kResiduals)};
  const bool all_states = offload.master && offload.momentum && offload.variance;
  offload.update_on_host = memory.offload_update.value_or(all_states ? scenario::UpdatePlace::kHost : scenario::UpdatePlace::kDevice) == scenario::UpdatePlace::kHost;
  offload.shared = memory.offload_shared;
  return offload;
}

}  // namespace

parallel::Strategy pick_strategy(const scenario::Loaded& loaded, const workload::ModelShape& shape) {
  const scenario::Scenario& s = loaded.scenario;
  parallel::Strategy strategy;
  strategy.tp = static_cast<std::int32_t>(s.parallel.tp);
  strategy.pp = static_cast<std::int32_t>(s.parallel.pp);
  strategy.dp = static_cast<std::int32_t>(s.parallel.dp);
  strategy.cp = static_cast<std::int32_t>(s.parallel.cp);
  strategy.context_style = context_style_of(s.parallel.cp_style);
  strategy.ep = static_cast<std::int32_t>(s.parallel.ep);
  if (s.parallel.etp) strategy.etp = static_cast<std::int32_t>(*s.parallel.etp);
  if (s.parallel.ep_within) strategy.ep_within = static_cast<std::int32_t>(*s.parallel.ep_within);
  strategy.routing = {.capacity_factor = s.model.capacity_factor,
                      .skew = s.model.expert_skew,
                      .seed = static_cast<std::uint64_t>(s.model.expert_seed)};
  if (s.parallel.fp8_dispatch) strategy.dispatch_dtype = plan::Dtype::kFp8;
  strategy.overlap_shared_experts = s.parallel.overlap_shared_experts;
  strategy.order = order_of(s.parallel.order);
  strategy.global_batch = s.batch.global;
  strategy.micro_batch = s.batch.micro;
  strategy.sequence = s.model.sequence;
  strategy.schedule = schedule_of(s.parallel.schedule);
  strategy.virtual_stages = static_cast<std::int32_t>(s.parallel.virtual_stages);
  strategy.layers_per_stage = s.parallel.layers_per_stage;
  if (s.parallel.schedule_file) {
    strategy.written = parallel::read_schedule(read_file(*s.parallel.schedule_file), *s.parallel.schedule_file,
                                               strategy.pp, parallel::micro_batches(strategy));
  }
  strategy.sequence_parallel = s.parallel.sequence_parallel;
  strategy.overlap_tensor_parallel = s.parallel.overlap_tensor_parallel;
  strategy.zero = static_cast<int>(s.parallel.zero);
  if (s.parallel.shard_group) strategy.shard_group = static_cast<std::int32_t>(*s.parallel.shard_group);
  strategy.overlap_grad_reduce = s.parallel.overlap_grad_reduce;
  strategy.overlap_param_gather = s.parallel.overlap_param_gather;
  strategy.reshard_after_forward = s.parallel.zero3_reshard_after_forward;
  strategy.prefetch = static_cast<std::int32_t>(s.parallel.prefetch);
  strategy.gather_by_matrix = s.parallel.gather_by_matrix;
  strategy.bucket = s.parallel.bucket;
  strategy.dtype = storage_dtype(s.training.precision);
  if (s.training.precision == scenario::Precision::kFp8) strategy.gemm_dtype = plan::Dtype::kFp8;
  strategy.gradient_dtype = gradient_dtype(s.memory.gradients);
  if (s.memory.reduce_gradients) strategy.reduce_dtype = gradient_dtype(*s.memory.reduce_gradients);
  strategy.fp32_master = s.memory.fp32_master;
  strategy.state_dtype = state_dtype(s.memory.optimizer_states);
  strategy.sync_every = s.parallel.sync_every_micro_batch;
  strategy.fp8_gather = s.parallel.fp8_param_gather;
  strategy.optimizer = optimizer_of(s.training.optimizer);
  strategy.adapters = pick_adapters(s.training);
  if (s.training.engine == scenario::EngineChoice::kTorch) strategy.keeps_stage_outputs = strategy.receives_ahead = true;
  strategy.host_waits = host_waits_of(s.training.host_waits);
  strategy.gradients_in_parameters = s.training.engine == scenario::EngineChoice::kGemini;
  strategy.keeps_buckets = s.training.engine == scenario::EngineChoice::kDdp && strategy.dp > 1 && strategy.zero == 0;
  if (s.training.engine == scenario::EngineChoice::kDeepSpeed) {
    const bool low = plan::element_bytes(strategy.dtype) < plan::element_bytes(plan::Dtype::kFp32);
    const bool sums_in_fp32 = strategy.gradient_dtype == plan::Dtype::kFp32;
    strategy.keeps_stage_outputs = true;
    strategy.copies_into_buckets = true;
    strategy.casts_gradients = low && !sums_in_fp32;
    strategy.keeps_low_gradients = low && sums_in_fp32;
  }
  strategy.offload = offload_of(s.memory);
  strategy.recompute = recompute_of(s.memory.recompute);
  strategy.recompute_parts = recompute_parts_of(s.memory.recompute_modules);
  strategy.recompute_span = recompute_span_of(s.memory.recompute_method);
  strategy.recompute_layers = s.memory.recompute_layers;
  strategy.attention = s.model.attention == scenario::AttentionChoice::kUnfused ? workload::AttentionKernel::kUnfused
                                                                                : workload::AttentionKernel::kFlash;
  strategy.fused_kernels = s.model.fused_kernels;
  strategy.fused_loss = s.model.fused_loss.value_or(s.model.fused_kernels);
  strategy.logit_copies = static_cast<int>(s.memory.logit_copies.value_or(strategy.fused_loss ? 0 : 1));
  strategy.fused_accumulation = s.model.fused_accumulation.value_or(s.model.fused_kernels);
  strategy.grouped_experts = s.model.grouped_experts;
  strategy.dropout = s.model.dropout;
  strategy.vocab_padding = s.model.vocab_padding;
  strategy.flops_convention = convention_of(s.model.flops_convention);
  std::vector<Diagnostic> problems;
  for (const parallel::StrategyError& error : parallel::check(shape, strategy)) {
    problems.push_back(diagnose(error, loaded));
  }
  if (!problems.empty()) throw UserError(problems);
  return strategy;
}

std::optional<workload::Adapters> pick_adapters(const scenario::Training& training) {
  return training.lora ? std::optional{adapters_of(*training.lora)} : std::nullopt;
}

plan::Dtype matrix_dtype(const scenario::Training& training) {
  return training.precision == scenario::Precision::kFp8 ? plan::Dtype::kFp8 : storage_dtype(training.precision);
}

}  // namespace stepcast::app
