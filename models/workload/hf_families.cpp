#include "models/workload/hf_families.hpp"

#include <fmt/format.h>

#include "models/workload/hf_common.hpp"

namespace stepcast::workload {

namespace {

void gpt2(JsonObject& c, ModelShape& shape) {
  read_common(c, shape, {.vocab = 50257, .tied = true});
  if (c.flag("multi_query").value_or(false)) shape.kv_heads = 1;  // GPT-BigCode
  layer_norm(shape);
  shape.attention_bias = shape.mlp_bias = true;
  shape.position = Position::kLearned;
  shape.max_positions =
      c.integer({"n_positions", "n_ctx", "max_position_embeddings"}, kTokens).value_or(1024);
  read_activation(c, shape, {"activation_function", "hidden_act"}, Activation::kGeluTanh);
}

void llama(JsonObject& c, ModelShape& shape) {
  read_common(c, shape, {.vocab = 32000, .ffn = 11008});
  shape.gated_mlp = true;
  shape.attention_bias = c.flag("attention_bias").value_or(false);
  shape.mlp_bias = c.flag("mlp_bias").value_or(false);
  read_activation(c, shape, {"hidden_act"}, Activation::kSilu);
  listed_windows(c, shape);
}

void mistral(JsonObject& c, ModelShape& shape) {
  read_common(c, shape, {.vocab = 32000, .ffn = 14336, .kv_heads = 8});
  shape.gated_mlp = true;
  read_activation(c, shape, {"hidden_act"}, Activation::kSilu);
  shape.sliding_window = c.integer({"sliding_window"}, kTokens);
  // The class's default is 4096; a file that writes null has none.
  if (!shape.sliding_window && !c.mentions("sliding_window")) shape.sliding_window = 4096;
  if (read_layer_types(c, shape)) drop_unused_window(shape);
}

void gemma_common(JsonObject& c, ModelShape& shape) {
  shape.gated_mlp = true;
  shape.attention_bias = c.flag("attention_bias").value_or(false);
  read_activation(c, shape, {"hidden_activation", "hidden_act"}, Activation::kGeluTanh);
}

// Gemma files may leave any key to the class.
void gemma_sizes(JsonObject& c, ModelShape& shape, std::int64_t layers, std::int64_t hidden,
                 std::int64_t heads) {
  shape.layers = c.integer({"num_hidden_layers"}, kLayers).value_or(layers);
  shape.hidden = c.integer({"hidden_size"}, kWidth).value_or(hidden);
  shape.heads = c.integer({"num_attention_heads"}, kHeads).value_or(heads);
}

void gemma(JsonObject& c, ModelShape& shape) {
  gemma_sizes(c, shape, 28, 3072, 16);
  read_common(c, shape,
              {.vocab = 256000, .ffn = 24576, .kv_heads = 16, .head_dim = 256, .tied = true});
  gemma_common(c, shape);
}

void gemma2(JsonObject& c, ModelShape& shape) {
  gemma_sizes(c, shape, 26, 2304, 8);
  read_common(c, shape,
              {.vocab = 256000, .ffn = 9216, .kv_heads = 4, .head_dim = 256, .tied = true});
  gemma_common(c, shape);
  shape.norms_per_layer = 4;
  shape.sliding_window = c.integer({"sliding_window"}, kTokens).value_or(4096);
  if (!read_layer_types(c, shape)) alternate(shape, 2);
  drop_unused_window(shape);
}

void gemma3(JsonObject& c, ModelShape& shape) {
  gemma_sizes(c, shape, 26, 2304, 8);
  read_common(c, shape,
              {.vocab = 262208, .ffn = 9216, .kv_heads = 4, .head_dim = 256, .tied = true});
  gemma_common(c, shape);
  shape.norms_per_layer = 4;
  shape.qk_norm = true;
  shape.sliding_window = c.integer({"sliding_window"}, kTokens).value_or(4096);
  const std::int64_t period =
      c.integer({"sliding_window_pattern", "_sliding_window_pattern"}, kLayers).value_or(6);
  if (!read_layer_types(c, shape)) alternate(shape, period);
  drop_unused_window(shape);
}

void qwen2(JsonObject& c, ModelShape& shape) {
  read_common(c, shape, {.vocab = 151936, .ffn = 22016, .kv_heads = 32});
  shape.gated_mlp = true;
  shape.qkv_bias_only = true;
  read_activation(c, shape, {"hidden_act"}, Activation::kSilu);
  qwen_window(c, shape);
}

void qwen3(JsonObject& c, ModelShape& shape) {
  read_common(c, shape, {.vocab = 151936, .ffn = 22016, .kv_heads = 32, .head_dim = 128});
  shape.gated_mlp = true;
  shape.qk_norm = true;
  shape.attention_bias = c.flag("attention_bias").value_or(false);
  read_activation(c, shape, {"hidden_act"}, Activation::kSilu);
  qwen_window(c, shape);
}

// Qwen 1: the file's MLP width is the sum of both gated halves, and Q, K, V always have biases.
void qwen1(JsonObject& c, ModelShape& shape) {
  read_common(c, shape, {.vocab = 151936, .ffn = 22016});
  if (shape.ffn % 2 != 0)
    c.report("ffn_hidden_size", "is not even", "the sum of two equal halves",
             std::to_string(shape.ffn));
  shape.ffn /= 2;
  shape.gated_mlp = true;
  shape.qkv_bias_only = true;
  if (!c.flag("no_bias").value_or(true)) {
    shape.qkv_bias_only = false;
    shape.attention_bias = shape.mlp_bias = true;
  }
}

// Qwen2 with one more layer that predicts the token after the next.
void mimo(JsonObject& c, ModelShape& shape) {
  qwen2(c, shape);
  shape.qkv_bias_only = c.flag("attention_bias").value_or(true);
}

void falcon(JsonObject& c, ModelShape& shape) {
  read_common(c, shape, {.vocab = 65024, .tied = true});
  const bool parallel = c.flag("parallel_attn").value_or(true);
  const bool old_multi_query = c.flag("multi_query").value_or(true);
  const bool new_decoder = c.flag("new_decoder_architecture").value_or(c.has("n_head_kv"));
  if (!new_decoder) shape.kv_heads = old_multi_query ? 1 : shape.heads;
  shape.parallel_block = parallel || new_decoder;
  shape.norms_per_layer = shape.parallel_block && !new_decoder ? 1 : 2;
  if (const auto norms = c.integer({"num_ln_in_parallel_attn"}, {1, 2});
      norms && shape.parallel_block)
    shape.norms_per_layer = static_cast<int>(*norms);
  layer_norm(shape);
  shape.attention_bias = shape.mlp_bias = c.flag("bias").value_or(false);
  shape.position = c.flag("alibi").value_or(false) ? Position::kAlibi : Position::kRotary;
  read_activation(c, shape, {"activation"}, Activation::kGelu);
}

void phi(JsonObject& c, ModelShape& shape) {
  read_common(c, shape, {.vocab = 51200, .ffn = 8192});
  layer_norm(shape);
  shape.parallel_block = true;
  shape.norms_per_layer = 1;
  shape.attention_bias = shape.mlp_bias = shape.head_bias = true;
  shape.qk_norm = c.flag("qk_layernorm").value_or(false);
  read_activation(c, shape, {"hidden_act"}, Activation::kGeluTanh);
}

void phi3(JsonObject& c, ModelShape& shape) {
  read_common(c, shape, {.vocab = 32064, .ffn = 8192});
  shape.gated_mlp = true;
  read_activation(c, shape, {"hidden_act"}, Activation::kSilu);
  shape.sliding_window = c.integer({"sliding_window"}, kTokens);
}

void gpt_neox(JsonObject& c, ModelShape& shape) {
  read_common(c, shape, {.vocab = 50432, .ffn = 24576});
  layer_norm(shape);
  shape.parallel_block = c.flag("use_parallel_residual").value_or(true);
  shape.attention_bias = c.flag("attention_bias").value_or(true);
  shape.mlp_bias = true;
  read_activation(c, shape, {"hidden_act"}, Activation::kGelu);
}

void mpt(JsonObject& c, ModelShape& shape) {
  read_common(c, shape, {.vocab = 50368, .tied = true});
  shape.ffn = c.integer({"expansion_ratio"}, {1, 64}).value_or(4) * shape.hidden;
  layer_norm(shape);
  shape.activation = Activation::kGelu;
  const bool bias = !c.flag("no_bias").value_or(true);
  shape.norm_bias = shape.attention_bias = shape.mlp_bias = bias;
  bool alibi = false;
  if (auto attention = c.object("attn_config")) {
    alibi = attention->flag("alibi").value_or(false);
    if (attention->flag("rope").value_or(false)) shape.position = Position::kRotary;
    if (attention->flag("qk_ln").value_or(false))
      attention->report("qk_ln", "a norm over all query heads at once is not modelled yet", "false",
                        "true");
    if (const auto type = attention->text({"attn_type"}); type && *type == "multiquery_attention")
      shape.kv_heads = 1;
    if (const auto kv = attention->integer({"kv_n_heads"}, kHeads)) shape.kv_heads = *kv;
    if (shape.heads % shape.kv_heads != 0)
      attention->report("kv_n_heads", "does not divide the attention heads",
                        fmt::format("a divisor of {} (n_heads)", shape.heads),
                        std::to_string(shape.kv_heads));
    if (attention->flag("rope").value_or(false)) return;
  }
  if (alibi) {
    shape.position = Position::kAlibi;
  } else if (c.flag("learned_pos_emb").value_or(true)) {
    shape.position = Position::kLearned;
    shape.max_positions = c.integer({"max_seq_len"}, kTokens).value_or(2048);
  } else {
    shape.position = Position::kNone;
  }
}

void opt(JsonObject& c, ModelShape& shape) {
  read_common(c, shape, {.vocab = 50272, .ffn = 3072, .tied = true});
  layer_norm(shape);
  shape.attention_bias = shape.mlp_bias = c.flag("enable_bias").value_or(true);
  shape.position = Position::kLearned;
  // The table starts with two rows that no token uses.
  shape.max_positions = c.integer({"max_position_embeddings"}, kTokens).value_or(2048) + 2;
  read_activation(c, shape, {"activation_function"}, Activation::kRelu);
  const auto width = c.integer({"word_embed_proj_dim"}, kWidth);
  if (width && *width != shape.hidden)
    c.report("word_embed_proj_dim", "embeddings narrower than the model are not modelled",
             std::to_string(shape.hidden), std::to_string(*width));
  if (!c.flag("do_layer_norm_before").value_or(true))
    c.report("do_layer_norm_before", "a norm after the residual sum is not modelled", "true",
             "false");
}

void bloom(JsonObject& c, ModelShape& shape) {
  read_common(c, shape, {.vocab = 250880, .tied = true});
  layer_norm(shape);
  shape.attention_bias = shape.mlp_bias = true;
  shape.activation = Activation::kGeluTanh;
  shape.position = Position::kAlibi;
  shape.embedding_norm = true;
}

struct Entry {
  const char* model_type;
  FamilyReader reader;
};

constexpr Entry kEntries[] = {
    {"bloom", bloom},
    {"falcon", falcon},
    {"gemma", gemma},
    {"gemma2", gemma2},
    {"gemma3", gemma3},
    {"gemma3_text", gemma3},
    {"gpt2", gpt2},
    {"gpt_bigcode", gpt2},
    {"gpt_neox", gpt_neox},
    {"llama", llama},
    {"mimo", mimo},
    {"mistral", mistral},
    {"mpt", mpt},
    {"opt", opt},
    {"phi", phi},
    {"phi3", phi3},
    {"qwen", qwen1},
    {"qwen2", qwen2},
    {"qwen2_5_vl", qwen2},
    {"qwen2_5_vl_text", qwen2},
    {"qwen2_vl", qwen2},
    {"qwen2_vl_text", qwen2},
    {"qwen3", qwen3},
    {"qwen3_vl", qwen3},
    {"qwen3_vl_text", qwen3},
    {"RefinedWeb", falcon},
    {"RefinedWebModel", falcon},
};

}  // namespace

FamilyReader family_reader(const std::string& model_type) {
  for (const Entry& entry : kEntries)
    if (model_type == entry.model_type) return entry.reader;
  return mixture_reader(model_type);
}

std::vector<std::string> known_model_types() {
  std::vector<std::string> types = known_mixture_types();
  for (const Entry& entry : kEntries) types.emplace_back(entry.model_type);
  return types;
}

}  // namespace stepcast::workload
