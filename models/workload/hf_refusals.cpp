#include <fmt/format.h>

#include "models/workload/hf_families.hpp"

namespace stepcast::workload {

namespace {

constexpr const char* kModelled = "a decoder-only transformer, dense or with experts";

struct Trait {
  const char* key;
  const char* problem;
  bool count = false;        // a number that must exceed 1 to mean anything
  bool of_mixtures = false;  // what the readers of families with experts take
};

constexpr Trait kTraits[] = {
    {"num_local_experts", "this family's experts are not known", true, true},
    {"num_experts", "this family's experts are not known", true, true},
    {"n_routed_experts", "this family's experts are not known", true, true},
    {"moe_num_experts", "this family's experts are not known", true, true},
    {"kv_lora_rank", "this family's latent attention is not known", false, true},
    {"index_topk", "sparse attention chosen by an indexer (DSA) is not modelled yet"},
    {"hybrid_override_pattern", "a hybrid of state-space and attention layers is not modelled yet"},
    {"linear_num_key_heads", "a hybrid of linear and full attention is not modelled yet"},
    {"layers_block_type", "a hybrid of layer types is not modelled yet"},
    {"mamba_d_state", "state-space layers are not modelled yet"},
    {"ssm_state_size", "state-space layers are not modelled yet"},
    {"state_size", "state-space layers are not modelled yet"},
    {"block_configs", "layers of different shapes are not modelled yet"},
    {"cross_attention_layers", "cross-attention layers are not modelled yet"},
};

// Types whose files need not hold a telling key.
struct KnownType {
  const char* model_type;
  const char* problem;
};

constexpr KnownType kKnownTypes[] = {
    {"deepseek_v32", "sparse attention chosen by an indexer (DSA) is not modelled yet"},
    {"deepseek_v4", "this DeepSeek attention is not modelled yet"},
    {"mamba", "state-space layers are not modelled yet"},
    {"mamba2", "state-space layers are not modelled yet"},
    {"rwkv", "recurrent layers are not modelled yet"},
    {"recurrent_gemma", "recurrent layers are not modelled yet"},
    {"gemma3n", "per-layer embeddings and shared key-value layers are not modelled yet"},
    {"gemma3n_text", "per-layer embeddings and shared key-value layers are not modelled yet"},
    {"gemma4", "per-layer embeddings and shared key-value layers are not modelled yet"},
    {"gemma4_text", "per-layer embeddings and shared key-value layers are not modelled yet"},
    {"nemotron-nas", "layers of different shapes are not modelled yet"},
    {"openelm", "layers of different shapes are not modelled yet"},
    {"bert", "an encoder is not modelled"},
    {"roberta", "an encoder is not modelled"},
    {"vit", "a vision encoder is not modelled"},
    {"t5", "an encoder-decoder is not modelled"},
    {"bart", "an encoder-decoder is not modelled"},
    {"whisper", "an encoder-decoder is not modelled"},
};

bool present(const nlohmann::json& value, const Trait& trait) {
  if (!trait.count) return !(value.is_array() && value.empty());
  return !value.is_number() || value.get<double>() > 1;
}

}  // namespace

bool refuse_other_architectures(JsonObject& config, const std::string& model_type) {
  bool refused = false;
  const auto refuse = [&](const std::string& key, const char* problem, const std::string& got) {
    config.report(key, problem, kModelled, got);
    refused = true;
  };
  const bool mixture = mixture_reader(model_type) != nullptr;
  for (const Trait& trait : kTraits) {
    if (mixture && trait.of_mixtures) continue;
    const auto* value = config.value(trait.key);
    if (value != nullptr && present(*value, trait))
      refuse(trait.key, trait.problem, fmt::format("{}: {}", trait.key, shown(*value)));
  }
  if (const auto* types = config.value("layer_types"); types != nullptr && types->is_array())
    for (std::size_t i = 0; i < types->size(); ++i) {
      const auto& type = (*types)[i];
      if (type == "full_attention" || type == "sliding_attention" || type == "chunked_attention") continue;
      refuse("layer_types", "a hybrid of layer types is not modelled yet",
             fmt::format("{} in layer {}", shown(type), i));
      break;
    }
  if (const auto* encoder = config.value("is_encoder_decoder");
      encoder != nullptr && *encoder == true)
    refuse("is_encoder_decoder", "an encoder-decoder is not modelled", "true");
  if (refused) return true;
  for (const KnownType& known : kKnownTypes)
    if (model_type == known.model_type) refuse("model_type", known.problem, model_type);
  return refused;
}

}  // namespace stepcast::workload
