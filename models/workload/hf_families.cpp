#include "models/workload/hf_families.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "sim/base/text.hpp"

namespace stepcast::workload {

namespace {

// Far past any published model, small enough that no product of them leaves 64 bits.
constexpr IntegerRange kLayers{1, 4096};
constexpr IntegerRange kWidth{1, std::int64_t{1} << 20};
constexpr IntegerRange kHeads{1, std::int64_t{1} << 14};
constexpr IntegerRange kHeadWidth{1, std::int64_t{1} << 14};
constexpr IntegerRange kMlpWidth{1, std::int64_t{1} << 23};
constexpr IntegerRange kVocab{1, std::int64_t{1} << 26};
constexpr IntegerRange kTokens{1, std::int64_t{1} << 30};

void read_activation(JsonObject& c, ModelShape& shape, JsonObject::Names names,
                     Activation otherwise) {
  shape.activation = otherwise;
  const auto word = c.text(names);
  if (!word) return;
  if (*word == "silu" || *word == "swish")
    shape.activation = Activation::kSilu;
  else if (*word == "gelu" || *word == "gelu_python")
    shape.activation = Activation::kGelu;
  else if (*word == "gelu_new" || *word == "gelu_pytorch_tanh" || *word == "gelu_fast" ||
           *word == "gelu_python_tanh")
    shape.activation = Activation::kGeluTanh;
  else if (*word == "relu")
    shape.activation = Activation::kRelu;
  else
    c.report(*names.begin(), "this activation function is not known",
             "one of gelu, gelu_fast, gelu_new, gelu_pytorch_tanh, relu, silu", *word);
}

struct Defaults {
  std::int64_t vocab = 0;
  std::int64_t ffn = 0;       // 0: 4 * hidden
  std::int64_t kv_heads = 0;  // 0: = heads
  std::int64_t head_dim = 0;  // 0: hidden / heads
  bool tied = false;
};

void read_heads(JsonObject& c, ModelShape& shape, const Defaults& defaults) {
  const auto kv = c.integer({"num_key_value_heads", "num_kv_heads", "n_head_kv"}, kHeads);
  shape.kv_heads = kv.value_or(defaults.kv_heads > 0 ? defaults.kv_heads : shape.heads);
  if (shape.heads % shape.kv_heads != 0)
    c.report("num_key_value_heads", kv ? "does not divide the attention heads" : "missing",
             fmt::format("a divisor of {} (num_attention_heads)", shape.heads),
             kv ? std::to_string(shape.kv_heads) : "");
  const auto head = c.integer({"head_dim", "attention_head_dim", "kv_channels"}, kHeadWidth);
  if (!head && defaults.head_dim == 0 && shape.hidden % shape.heads != 0)
    c.report("num_attention_heads", "does not divide the hidden size, and there is no head_dim",
             fmt::format("a divisor of {}", shape.hidden), std::to_string(shape.heads));
  shape.head_dim =
      head.value_or(defaults.head_dim > 0 ? defaults.head_dim : shape.hidden / shape.heads);
}

// The keys nearly all decoders share.
void read_common(JsonObject& c, ModelShape& shape, const Defaults& defaults) {
  if (shape.layers == 0)
    shape.layers =
        c.required_integer({"num_hidden_layers", "n_layer", "num_layers", "n_layers"}, kLayers);
  if (shape.hidden == 0)
    shape.hidden = c.required_integer({"hidden_size", "n_embd", "d_model", "n_embed"}, kWidth);
  if (shape.heads == 0)
    shape.heads = c.required_integer({"num_attention_heads", "n_head", "n_heads"}, kHeads);
  read_heads(c, shape, defaults);
  shape.ffn = c.integer({"intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size"}, kMlpWidth)
                  .value_or(defaults.ffn > 0 ? defaults.ffn : 4 * shape.hidden);
  shape.vocab = c.integer({"padded_vocab_size", "vocab_size"}, kVocab).value_or(defaults.vocab);
  shape.tied_embeddings = c.flag("tie_word_embeddings").value_or(defaults.tied);
}

// layer_types where the file lists them.
bool read_layer_types(JsonObject& c, ModelShape& shape) {
  const auto* types = c.value("layer_types");
  if (types == nullptr) return false;
  if (!types->is_array() || static_cast<std::int64_t>(types->size()) != shape.layers) {
    c.report("layer_types", "does not have one entry per layer",
             fmt::format("a list of {} (num_hidden_layers)", shape.layers),
             types->is_array() ? fmt::format("{} entries", types->size()) : shown(*types));
    return true;
  }
  for (const auto& type : *types) shape.layer_is_sliding.push_back(type == "sliding_attention");
  return true;
}

// Every `period`-th layer sees everything.
void alternate(ModelShape& shape, std::int64_t period) {
  for (std::int64_t i = 0; i < shape.layers; ++i)
    shape.layer_is_sliding.push_back((i + 1) % period != 0);
}

// A list without a sliding layer means no window at all.
void drop_unused_window(ModelShape& shape) {
  bool any = shape.layer_is_sliding.empty();
  for (const bool sliding : shape.layer_is_sliding) any = any || sliding;
  if (!any) shape.sliding_window.reset();
  if (!shape.sliding_window) shape.layer_is_sliding.clear();
}

// Families whose class has no window of its own, but whose files may list layer types.
void listed_windows(JsonObject& c, ModelShape& shape) {
  if (!read_layer_types(c, shape)) return;
  shape.sliding_window = c.integer({"sliding_window"}, kTokens);
  const bool slides = std::find(shape.layer_is_sliding.begin(), shape.layer_is_sliding.end(),
                                true) != shape.layer_is_sliding.end();
  if (slides && !shape.sliding_window)
    c.report("sliding_window", "missing, with sliding layers in layer_types", "a number of tokens");
  drop_unused_window(shape);
}

void layer_norm(ModelShape& shape) {
  shape.norm = NormKind::kLayerNorm;
}

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

void qwen_window(JsonObject& c, ModelShape& shape) {
  const auto window = c.integer({"sliding_window"}, kTokens);
  if (read_layer_types(c, shape)) {
    shape.sliding_window = window;
    drop_unused_window(shape);
    return;
  }
  if (!c.flag("use_sliding_window").value_or(false)) return;
  shape.sliding_window = window.value_or(4096);
  const std::int64_t full = c.integer({"max_window_layers"}, {0, kLayers.most}).value_or(28);
  for (std::int64_t i = 0; i < shape.layers; ++i) shape.layer_is_sliding.push_back(i >= full);
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
  return nullptr;
}

std::vector<std::string> known_model_types() {
  std::vector<std::string> types;
  for (const Entry& entry : kEntries) types.emplace_back(entry.model_type);
  return types;
}

}  // namespace stepcast::workload
