// Mixtures of experts, and latent attention.
#include <fmt/format.h>

#include "models/workload/hf_common.hpp"
#include "models/workload/hf_families.hpp"

namespace stepcast::workload {

namespace {

constexpr IntegerRange kExperts{1, std::int64_t{1} << 16};

void sizes(JsonObject& c, ModelShape& shape, JsonObject::Names count, JsonObject::Names top_k, JsonObject::Names ffn) {
  ExpertShape experts;
  experts.count = c.required_integer(count, kExperts);
  experts.top_k = c.required_integer(top_k, kExperts);
  experts.ffn = c.integer(ffn, kMlpWidth).value_or(shape.ffn);
  if (experts.top_k > experts.count)
    c.report(*top_k.begin(), "more experts a token than there are", fmt::format("at most {} ({})", experts.count, *count.begin()),
             std::to_string(experts.top_k));
  shape.experts = experts;
}

template <class HasExperts>
void choose_layers(ModelShape& shape, HasExperts has_experts) {
  bool all = true;
  for (std::int64_t i = 0; i < shape.layers; ++i) {
    shape.layer_has_experts.push_back(has_experts(i));
    all = all && shape.layer_has_experts.back();
  }
  if (all) shape.layer_has_experts.clear();
}

// The first layers dense, then every n-th with experts.
void after_dense_layers(JsonObject& c, ModelShape& shape) {
  const std::int64_t dense = c.integer({"first_k_dense_replace"}, {0, kLayers.most}).value_or(0);
  const std::int64_t every = c.integer({"moe_layer_freq"}, kLayers).value_or(1);
  choose_layers(shape, [&](std::int64_t i) { return i >= dense && i % every == 0; });
}

// Every n-th layer, but for those listed as dense.
void sparse_steps(JsonObject& c, ModelShape& shape) {
  const std::int64_t every = c.integer({"decoder_sparse_step"}, kLayers).value_or(1);
  const auto* dense = c.value("mlp_only_layers");
  choose_layers(shape, [&](std::int64_t i) {
    if (dense != nullptr && dense->is_array())
      for (const auto& layer : *dense)
        if (layer == i) return false;
    return (i + 1) % every == 0;
  });
}

void mixtral(JsonObject& c, ModelShape& shape) {
  read_common(c, shape, {.vocab = 32000, .ffn = 14336, .kv_heads = 8});
  shape.gated_mlp = true;
  read_activation(c, shape, {"hidden_act"}, Activation::kSilu);
  shape.sliding_window = c.integer({"sliding_window"}, kTokens);
  sizes(c, shape, {"num_local_experts"}, {"num_experts_per_tok"}, {"intermediate_size"});
}

void phimoe(JsonObject& c, ModelShape& shape) {
  mixtral(c, shape);
  layer_norm(shape);
  shape.attention_bias = c.flag("attention_bias").value_or(false);
  shape.head_bias = c.flag("lm_head_bias").value_or(false);
}

void olmoe(JsonObject& c, ModelShape& shape) {
  read_common(c, shape, {.vocab = 50304, .ffn = 2048});
  shape.gated_mlp = true;
  shape.qk_norm = shape.qk_norm_whole = true;
  shape.attention_bias = c.flag("attention_bias").value_or(false);
  read_activation(c, shape, {"hidden_act"}, Activation::kSilu);
  sizes(c, shape, {"num_experts"}, {"num_experts_per_tok"}, {"intermediate_size"});
}

void minimax_m2(JsonObject& c, ModelShape& shape) {
  mixtral(c, shape);
  shape.qk_norm = shape.qk_norm_whole = c.flag("use_qk_norm").value_or(true);
  shape.experts->router_bias = c.flag("use_routing_bias").value_or(true);
  if (c.integer({"shared_intermediate_size"}, {0, kMlpWidth.most}).value_or(0) > 0)
    c.report("shared_intermediate_size", "shared experts of this family are not known", "0");
}

void dbrx(JsonObject& c, ModelShape& shape) {
  read_common(c, shape, {.vocab = 32000});
  layer_norm(shape);
  shape.norm_bias = false;
  shape.gated_mlp = true;
  if (auto attention = c.object("attn_config"))
    shape.kv_heads = attention->integer({"kv_n_heads"}, kHeads).value_or(1);
  auto mlp = c.object("ffn_config");
  if (!mlp) {
    c.report("ffn_config", "missing", "an object with moe_num_experts and moe_top_k");
    return;
  }
  shape.ffn = mlp->integer({"ffn_hidden_size"}, kMlpWidth).value_or(3584);
  sizes(*mlp, shape, {"moe_num_experts"}, {"moe_top_k"}, {"ffn_hidden_size"});
}

void gpt_oss(JsonObject& c, ModelShape& shape) {
  read_common(c, shape, {.vocab = 201088, .ffn = 2880, .kv_heads = 8, .head_dim = 64});
  shape.gated_mlp = true;
  shape.attention_bias = c.flag("attention_bias").value_or(true);
  shape.attention_sinks = true;
  read_activation(c, shape, {"hidden_act"}, Activation::kSilu);
  shape.sliding_window = c.integer({"sliding_window"}, kTokens).value_or(128);
  if (!read_layer_types(c, shape)) alternate(shape, 2);
  drop_unused_window(shape);
  sizes(c, shape, {"num_local_experts"}, {"num_experts_per_tok", "experts_per_token"}, {"intermediate_size"});
  shape.experts->bias = shape.experts->router_bias = true;
}

void llama4(JsonObject& c, ModelShape& shape) {
  read_common(c, shape, {.vocab = 202048, .ffn = 8192, .kv_heads = 8});
  shape.gated_mlp = true;
  shape.attention_bias = c.flag("attention_bias").value_or(false);
  shape.qk_norm = c.flag("use_qk_norm").value_or(true);
  shape.qk_norm_gain = false;
  read_activation(c, shape, {"hidden_act"}, Activation::kSilu);
  sizes(c, shape, {"num_local_experts"}, {"num_experts_per_tok"}, {"intermediate_size"});
  shape.experts->shared_ffn = shape.experts->ffn;
  shape.ffn = c.integer({"intermediate_size_mlp"}, kMlpWidth).value_or(16384);
  const std::int64_t every = c.integer({"interleave_moe_layer_step"}, kLayers).value_or(1);
  choose_layers(shape, [&](std::int64_t i) { return (i + 1) % every == 0; });
  // Three layers of four look only within chunks of the sequence; each fourth sees everything.
  if (const auto chunk = c.integer({"attention_chunk_size"}, kTokens)) {
    shape.sliding_window = chunk;
    shape.window_is_chunk = true;
    alternate(shape, 4);
  }
}

void qwen2_moe(JsonObject& c, ModelShape& shape) {
  read_common(c, shape, {.vocab = 151936, .ffn = 5632, .kv_heads = 16});
  shape.gated_mlp = true;
  shape.qkv_bias_only = true;
  read_activation(c, shape, {"hidden_act"}, Activation::kSilu);
  qwen_window(c, shape);
  sizes(c, shape, {"num_experts"}, {"num_experts_per_tok"}, {"moe_intermediate_size"});
  shape.experts->shared_ffn = c.integer({"shared_expert_intermediate_size"}, kMlpWidth).value_or(5632);
  shape.experts->shared_gate = true;
  sparse_steps(c, shape);
}

void qwen3_moe(JsonObject& c, ModelShape& shape) {
  read_common(c, shape, {.vocab = 151936, .ffn = 6144, .kv_heads = 4});
  shape.gated_mlp = true;
  shape.qk_norm = true;
  shape.attention_bias = c.flag("attention_bias").value_or(false);
  read_activation(c, shape, {"hidden_act"}, Activation::kSilu);
  qwen_window(c, shape);
  sizes(c, shape, {"num_experts", "num_local_experts"}, {"num_experts_per_tok"}, {"moe_intermediate_size"});
  sparse_steps(c, shape);
}

void glm4_moe(JsonObject& c, ModelShape& shape) {
  read_common(c, shape, {.vocab = 151552, .ffn = 10944, .kv_heads = 8});
  shape.gated_mlp = true;
  shape.qkv_bias_only = c.flag("attention_bias").value_or(false);
  shape.qk_norm = c.flag("use_qk_norm").value_or(false);
  read_activation(c, shape, {"hidden_act"}, Activation::kSilu);
  sizes(c, shape, {"n_routed_experts"}, {"num_experts_per_tok"}, {"moe_intermediate_size"});
  shape.experts->router_bias = true;
  shape.experts->shared_ffn = c.integer({"n_shared_experts"}, {0, kExperts.most}).value_or(1) * shape.experts->ffn;
  after_dense_layers(c, shape);
}

void latent_attention(JsonObject& c, ModelShape& shape) {
  LatentAttention latent;
  latent.q_rank = c.integer({"q_lora_rank"}, kWidth).value_or(0);
  latent.kv_rank = c.required_integer({"kv_lora_rank"}, kWidth);
  latent.nope_dim = c.required_integer({"qk_nope_head_dim"}, kHeadWidth);
  latent.rope_dim = c.required_integer({"qk_rope_head_dim"}, kHeadWidth);
  latent.value_dim = c.required_integer({"v_head_dim"}, kHeadWidth);
  shape.latent = latent;
  shape.kv_heads = shape.heads;
  shape.head_dim = latent.nope_dim + latent.rope_dim;
}

void deepseek(JsonObject& c, ModelShape& shape) {
  read_common(c, shape, {.vocab = 102400, .ffn = 11008});
  latent_attention(c, shape);
  shape.gated_mlp = true;
  shape.attention_bias = c.flag("attention_bias").value_or(false);
  read_activation(c, shape, {"hidden_act"}, Activation::kSilu);
  sizes(c, shape, {"n_routed_experts"}, {"num_experts_per_tok"}, {"moe_intermediate_size"});
  shape.experts->router_bias = c.text({"topk_method"}).value_or("") == "noaux_tc";
  shape.experts->shared_ffn = c.integer({"n_shared_experts"}, {0, kExperts.most}).value_or(0) * shape.experts->ffn;
  const std::int64_t groups = c.integer({"n_group"}, {0, kExperts.most}).value_or(1);
  const std::int64_t chosen = c.integer({"topk_group"}, {0, kExperts.most}).value_or(groups);
  if (chosen < groups) shape.experts->node_limit = chosen;
  after_dense_layers(c, shape);
}

struct Entry {
  const char* model_type;
  FamilyReader reader;
};

constexpr Entry kEntries[] = {
    {"dbrx", dbrx},
    {"deepseek_v2", deepseek},
    {"deepseek_v3", deepseek},
    {"glm4_moe", glm4_moe},
    {"gpt_oss", gpt_oss},
    {"kimi_k2", deepseek},
    {"llama4", llama4},
    {"llama4_text", llama4},
    {"minimax_m2", minimax_m2},
    {"mixtral", mixtral},
    {"olmoe", olmoe},
    {"phimoe", phimoe},
    {"qwen2_moe", qwen2_moe},
    {"qwen3_moe", qwen3_moe},
    {"qwen3_vl_moe", qwen3_moe},
    {"qwen3_vl_moe_text", qwen3_moe},
};

}  // namespace

FamilyReader mixture_reader(const std::string& model_type) {
  for (const Entry& entry : kEntries)
    if (model_type == entry.model_type) return entry.reader;
  return nullptr;
}

std::vector<std::string> known_mixture_types() {
  std::vector<std::string> types;
  for (const Entry& entry : kEntries) types.emplace_back(entry.model_type);
  return types;
}

}  // namespace stepcast::workload
