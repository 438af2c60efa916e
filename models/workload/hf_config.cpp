#include "models/workload/hf_config.hpp"

#include <optional>

#include <fmt/format.h>

#include "models/workload/hf_families.hpp"
#include "models/workload/hf_vision.hpp"
#include "sim/base/plain_text.hpp"
#include "sim/base/text.hpp"

namespace stepcast::workload {

namespace {

// "models/Llama-3-8B/config.json" and "hf/Llama-3-8B.json" are both Llama-3-8B.
std::string name_from(const std::string& file) {
  const std::vector<std::string> parts = split(file, '/');
  std::string stem = parts.back();
  if (const auto dot = stem.rfind('.'); dot != std::string::npos && dot > 0) stem.resize(dot);
  if (stem == "config" && parts.size() > 1 && !parts[parts.size() - 2].empty())
    return parts[parts.size() - 2];
  return stem;
}

// model_type, or what the architecture's class name says where a file lacks it.
std::optional<std::string> model_type_of(JsonObject& config) {
  if (const auto type = config.text({"model_type"})) return type;
  const auto* architectures = config.value("architectures");
  if (architectures == nullptr || !architectures->is_array() || architectures->empty() ||
      !architectures->front().is_string())
    return std::nullopt;
  struct Class {
    const char* start;
    const char* type;
  };
  constexpr Class kClasses[] = {
      {"GPT2", "gpt2"},        {"Llama", "llama"},    {"Mistral", "mistral"}, {"Gemma2", "gemma2"},
      {"Gemma3", "gemma3"},    {"GemmaFor", "gemma"}, {"Qwen2For", "qwen2"},  {"Qwen3For", "qwen3"},
      {"QWen", "qwen"},        {"Falcon", "falcon"},  {"PhiFor", "phi"},      {"Phi3For", "phi3"},
      {"GPTNeoX", "gpt_neox"}, {"MPT", "mpt"},        {"OPT", "opt"},         {"Bloom", "bloom"},      {"Mixtral", "mixtral"}, {"PhiMoE", "phimoe"},   {"Olmoe", "olmoe"},
      {"DbrxFor", "dbrx"},     {"Qwen2Moe", "qwen2_moe"}, {"Qwen3Moe", "qwen3_moe"}, {"GptOss", "gpt_oss"},
      {"Llama4", "llama4"},    {"DeepseekV2", "deepseek_v2"}, {"DeepseekV3", "deepseek_v3"}};
  const auto name = architectures->front().get<std::string>();
  for (const Class& entry : kClasses)
    if (name.rfind(entry.start, 0) == 0 && (name.rfind("Llama4", 0) != 0 || entry.type == std::string_view{"llama4"}))
      return entry.type;
  return std::nullopt;
}

void note(ModelShape& shape, const std::string& sentence) {
  shape.note += (shape.note.empty() ? "" : "; ") + sentence;
}

void unknown_type(JsonObject& config, const std::optional<std::string>& type) {
  const std::vector<std::string> known = known_model_types();
  if (!type) {
    config.report("model_type", "missing", one_of(known));
    return;
  }
  const auto nearest = nearest_word(*type, known);
  config.report("model_type", "this model family is not known", one_of(known), *type,
                nearest ? "did you mean '" + *nearest + "'?" : "");
}

}  // namespace

ModelShape read_hf_config(std::string_view text, const std::string& file) {
  const JsonDocument document{text, file};
  Diagnostics diagnostics;
  JsonObject outer{document, document.root(), "", diagnostics};
  std::optional<std::string> type = model_type_of(outer);

  ModelShape shape;
  shape.name = name_from(file);
  JsonObject config = outer;
  bool multimodal = outer.has("vision_config") || outer.has("audio_config");
  if (auto inner = outer.object("text_config")) {
    multimodal = true;
    config = *inner;
    if (const auto inner_type = model_type_of(*inner)) type = inner_type;
  }
  if (multimodal) note(shape, "text part of a multimodal model");

  const bool refused = refuse_other_architectures(config, type.value_or(""));
  diagnostics.throw_if_any();
  const FamilyReader read = type && !refused ? family_reader(*type) : nullptr;
  if (read == nullptr) {
    unknown_type(config.has("model_type") ? config : outer, type);
    diagnostics.throw_if_any();
  }
  read(config, shape);
  shape.vision = read_vision(outer, shape);
  // The flag of a multimodal file may stand beside the text part.
  if (!config.has("tie_word_embeddings"))
    if (const auto tied = outer.flag("tie_word_embeddings")) shape.tied_embeddings = *tied;
  if (const auto extra = config.integer({"num_nextn_predict_layers"}, {0, 64});
      extra.value_or(0) > 0)
    note(shape, fmt::format("without its {} multi-token prediction layer(s)", *extra));
  diagnostics.throw_if_any();
  return shape;
}

ModelShape load_hf_config(const std::string& path) {
  return read_hf_config(read_text_file(path, "a config.json of Hugging Face"), path);
}

}  // namespace stepcast::workload
