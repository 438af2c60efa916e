#include "models/workload/hf_common.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "sim/base/text.hpp"

namespace stepcast::workload {

namespace {

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

}  // namespace

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

void alternate(ModelShape& shape, std::int64_t period) {
  for (std::int64_t i = 0; i < shape.layers; ++i)
    shape.layer_is_sliding.push_back((i + 1) % period != 0);
}

void drop_unused_window(ModelShape& shape) {
  bool any = shape.layer_is_sliding.empty();
  for (const bool sliding : shape.layer_is_sliding) any = any || sliding;
  if (!any) shape.sliding_window.reset();
  if (!shape.sliding_window) shape.layer_is_sliding.clear();
}

void listed_windows(JsonObject& c, ModelShape& shape) {
  if (!read_layer_types(c, shape)) return;
  shape.sliding_window = c.integer({"sliding_window"}, kTokens);
  const bool slides = std::find(shape.layer_is_sliding.begin(), shape.layer_is_sliding.end(),
                                true) != shape.layer_is_sliding.end();
  if (slides && !shape.sliding_window)
    c.report("sliding_window", "missing, with sliding layers in layer_types", "a number of tokens");
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

}  // namespace stepcast::workload
