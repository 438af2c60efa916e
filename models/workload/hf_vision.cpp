#include "models/workload/hf_vision.hpp"

#include <algorithm>
#include <cmath>

#include "models/workload/hf_common.hpp"

namespace stepcast::workload {

namespace {

constexpr IntegerRange kSmall{1, 4096};

std::int64_t value(JsonObject& c, JsonObject::Names names, IntegerRange range, std::int64_t otherwise) {
  return c.integer(names, range).value_or(otherwise);
}

VisionTower qwen3_vl(JsonObject& c, const ModelShape& text) {
  VisionTower t;
  t.layers = value(c, {"depth"}, kLayers, 27);
  t.hidden = value(c, {"hidden_size"}, kWidth, 1152);
  t.heads = value(c, {"num_heads"}, kHeads, 16);
  t.ffn = value(c, {"intermediate_size"}, kMlpWidth, 4304);
  t.rotary = true;
  t.patch = value(c, {"patch_size"}, kSmall, 16);
  t.patch_values = value(c, {"in_channels"}, kSmall, 3) * value(c, {"temporal_patch_size"}, kSmall, 2) * t.patch * t.patch;
  t.positions = value(c, {"num_position_embeddings"}, kTokens, 2304);
  const std::int64_t merge = value(c, {"spatial_merge_size"}, kSmall, 2);
  t.merged = merge * merge;
  t.projector = {t.projector_width(), value(c, {"out_hidden_size"}, kWidth, text.hidden)};
  t.projector_bias = t.projector_norm = true;
  const nlohmann::json* taps = c.value("deepstack_visual_indexes");
  t.taps = taps != nullptr && taps->is_array() ? static_cast<std::int64_t>(std::min<std::size_t>(taps->size(), 64)) : 3;
  return t;
}

VisionTower siglip(JsonObject& c, JsonObject& outer, const ModelShape& text) {
  VisionTower t;
  t.layers = value(c, {"num_hidden_layers"}, kLayers, 27);
  t.hidden = value(c, {"hidden_size"}, kWidth, 1152);
  t.heads = value(c, {"num_attention_heads"}, kHeads, 16);
  t.ffn = value(c, {"intermediate_size"}, kMlpWidth, 4304);
  t.patch = value(c, {"patch_size"}, kSmall, 14);
  t.patch_values = 3 * t.patch * t.patch;
  t.image_size = value(c, {"image_size"}, kTokens, 896);
  t.positions = t.patches();
  t.merged = std::max<std::int64_t>(1, t.patches() / value(outer, {"mm_tokens_per_image"}, kTokens, 256));
  t.pooled = true;
  t.projector = {text.hidden};
  // The norm behind the layers, and the projector's, which has a gain alone.
  t.extra_parameters = 2 * t.hidden + t.hidden;
  return t;
}

VisionTower llama4(JsonObject& c, const ModelShape& text) {
  VisionTower t;
  t.layers = value(c, {"num_hidden_layers"}, kLayers, 34);
  t.hidden = value(c, {"hidden_size"}, kWidth, 768);
  t.heads = value(c, {"num_attention_heads"}, kHeads, 16);
  t.ffn = value(c, {"intermediate_size"}, kMlpWidth, 5632);
  t.rotary = true;
  t.patch = value(c, {"patch_size"}, kSmall, 14);
  t.patch_values = 3 * t.patch * t.patch;
  t.patch_bias = false;
  t.image_size = value(c, {"image_size"}, kTokens, 448);
  t.positions = t.patches() + 1;  // and a class token's
  const nlohmann::json* given = c.value("pixel_shuffle_ratio");
  const double ratio = given != nullptr && given->is_number() ? std::clamp(given->get<double>(), 0.05, 1.0) : 0.5;
  t.merged = std::llround(1.0 / (ratio * ratio));
  t.projector = {value(c, {"projector_input_dim"}, kWidth, 4096), value(c, {"projector_output_dim"}, kWidth, 4096), text.hidden};
  t.extra_parameters = t.hidden + 4 * t.hidden;  // class token, norms before and behind the layers
  return t;
}

}  // namespace

std::optional<VisionTower> read_vision(JsonObject& config, const ModelShape& text) {
  if (!config.has("vision_config")) return std::nullopt;
  auto vision = config.object("vision_config");
  if (!vision || !vision->has("model_type")) return std::nullopt;
  const std::string type = vision->text({"model_type"}).value_or("");
  std::optional<VisionTower> tower;
  if (type == "qwen3_vl" || type == "qwen3_vl_moe") tower = qwen3_vl(*vision, text);
  if (type == "siglip_vision_model" && config.text({"model_type"}).value_or("") == "gemma3") tower = siglip(*vision, config, text);
  if (type == "llama4_vision_model") tower = llama4(*vision, text);
  if (tower && tower->hidden % tower->heads != 0) tower.reset();
  return tower;
}

}  // namespace stepcast::workload
