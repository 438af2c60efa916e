#include "models/workload/presets.hpp"

#include <span>

#include "sim/base/text.hpp"

namespace stepcast::workload {

namespace {

struct Row {
  const char* name;
  std::int64_t layers, hidden, heads, kv_heads, head_dim, ffn, vocab;
};

using Adjust = void (*)(ModelShape&);

struct Family {
  const char* source;
  Adjust adjust;
  std::span<const Row> rows;
};

// LayerNorm, GELU and biases everywhere, two-matrix MLP: GPT and its descendants.
void gpt(ModelShape& shape, std::int64_t positions) {
  shape.tied_embeddings = true;
  shape.attention_bias = shape.mlp_bias = true;
  shape.norm = NormKind::kLayerNorm;
  shape.activation = Activation::kGeluTanh;
  shape.position = Position::kLearned;
  shape.max_positions = positions;
}

// RMSNorm, SwiGLU, rotary positions, no biases: Llama and its descendants; ModelShape's defaults.
void llama(ModelShape& shape) { shape.gated_mlp = true; }
void llama_tied(ModelShape& shape) {
  llama(shape);
  shape.tied_embeddings = true;
}

void mistral_v01(ModelShape& shape) {
  llama(shape);
  shape.sliding_window = 4096;
}

void gemma(ModelShape& shape) {
  llama_tied(shape);
  shape.activation = Activation::kGeluTanh;
}

// Every `period`-th layer sees everything, the others a window.
void alternate(ModelShape& shape, std::int64_t window, std::int64_t period) {
  shape.sliding_window = window;
  for (std::int64_t i = 0; i < shape.layers; ++i) shape.layer_is_sliding.push_back((i + 1) % period != 0);
}

void gemma2(ModelShape& shape) {
  gemma(shape);
  shape.norms_per_layer = 4;
  alternate(shape, 4096, 2);
}

void gemma3(ModelShape& shape) {
  gemma(shape);
  shape.norms_per_layer = 4;
  shape.qk_norm = true;
  alternate(shape, shape.layers == 26 ? 512 : 1024, 6);  // the 1B model: 512
}

void qwen2(ModelShape& shape) {
  llama(shape);
  shape.qkv_bias_only = true;
}
void qwen2_tied(ModelShape& shape) {
  qwen2(shape);
  shape.tied_embeddings = true;
}
void qwen3(ModelShape& shape) {
  llama(shape);
  shape.qk_norm = true;
}
void qwen3_tied(ModelShape& shape) {
  qwen3(shape);
  shape.tied_embeddings = true;
}

void mpt(ModelShape& shape) {
  shape.tied_embeddings = true;
  shape.norm = NormKind::kLayerNorm;
  shape.norm_bias = false;
  shape.activation = Activation::kGelu;
  shape.position = Position::kAlibi;
}

void falcon(ModelShape& shape) {
  shape.tied_embeddings = true;
  shape.parallel_block = true;
  shape.norm = NormKind::kLayerNorm;
  shape.norms_per_layer = shape.kv_heads == 1 ? 1 : 2;
  shape.activation = Activation::kGelu;
}

void phi2(ModelShape& shape) {
  shape.parallel_block = true;
  shape.attention_bias = shape.mlp_bias = shape.head_bias = true;
  shape.norm = NormKind::kLayerNorm;
  shape.norms_per_layer = 1;
  shape.activation = Activation::kGeluTanh;
}

void neox(ModelShape& shape) {
  shape.parallel_block = true;
  shape.attention_bias = shape.mlp_bias = true;
  shape.norm = NormKind::kLayerNorm;
  shape.activation = Activation::kGelu;
}

void opt(ModelShape& shape) {
  gpt(shape, 2050);  // two rows of the table are an offset
  shape.activation = Activation::kRelu;
}

void bloom(ModelShape& shape) {
  gpt(shape, 0);
  shape.position = Position::kAlibi;
  shape.embedding_norm = true;
}

// Columns: layers, hidden, heads, KV heads, head width, MLP width, vocabulary.
constexpr Row kGpt2[] = {
    {"gpt2", 12, 768, 12, 12, 64, 3072, 50257},
    {"gpt2-medium", 24, 1024, 16, 16, 64, 4096, 50257},
    {"gpt2-large", 36, 1280, 20, 20, 64, 5120, 50257},
    {"gpt2-xl", 48, 1600, 25, 25, 64, 6400, 50257},
};
// The paper prints 24 heads of 128 for 1.3B (they do not make 2048) and width 5140 for 13B.
constexpr Row kGpt3[] = {
    {"gpt3-125m", 12, 768, 12, 12, 64, 3072, 50257},
    {"gpt3-350m", 24, 1024, 16, 16, 64, 4096, 50257},
    {"gpt3-760m", 24, 1536, 16, 16, 96, 6144, 50257},
    {"gpt3-1.3b", 24, 2048, 16, 16, 128, 8192, 50257},
    {"gpt3-2.7b", 32, 2560, 32, 32, 80, 10240, 50257},
    {"gpt3-6.7b", 32, 4096, 32, 32, 128, 16384, 50257},
    {"gpt3-13b", 40, 5120, 40, 40, 128, 20480, 50257},
    {"gpt3-175b", 96, 12288, 96, 96, 128, 49152, 50257},
};
constexpr Row kMegatron[] = {
    {"megatron-1.7b", 24, 2304, 24, 24, 96, 9216, 51200},
    {"megatron-3.6b", 30, 3072, 32, 32, 96, 12288, 51200},
    {"megatron-7.5b", 36, 4096, 32, 32, 128, 16384, 51200},
    {"megatron-18b", 40, 6144, 48, 48, 128, 24576, 51200},
    {"megatron-39b", 48, 8192, 64, 64, 128, 32768, 51200},
    {"megatron-76b", 60, 10240, 80, 80, 128, 40960, 51200},
    {"megatron-145b", 80, 12288, 96, 96, 128, 49152, 51200},
    {"megatron-310b", 96, 16384, 128, 128, 128, 65536, 51200},
    {"megatron-530b", 105, 20480, 128, 128, 160, 81920, 51200},
    {"megatron-1t", 128, 25600, 160, 160, 160, 102400, 51200},
};
constexpr Row kLlama[] = {
    {"llama-7b", 32, 4096, 32, 32, 128, 11008, 32000},
    {"llama-13b", 40, 5120, 40, 40, 128, 13824, 32000},
    {"llama-33b", 60, 6656, 52, 52, 128, 17920, 32000},
    {"llama-65b", 80, 8192, 64, 64, 128, 22016, 32000},
};
constexpr Row kLlama2[] = {
    {"llama2-7b", 32, 4096, 32, 32, 128, 11008, 32000},
    {"llama2-13b", 40, 5120, 40, 40, 128, 13824, 32000},
    {"llama2-70b", 80, 8192, 64, 8, 128, 28672, 32000},
};
constexpr Row kLlama3[] = {
    {"llama3-8b", 32, 4096, 32, 8, 128, 14336, 128256},
    {"llama3-70b", 80, 8192, 64, 8, 128, 28672, 128256},
    {"llama3-405b", 126, 16384, 128, 8, 128, 53248, 128256},
};
constexpr Row kLlama32[] = {
    {"llama3.2-1b", 16, 2048, 32, 8, 64, 8192, 128256},
    {"llama3.2-3b", 28, 3072, 24, 8, 128, 8192, 128256},
};
constexpr Row kMistral01[] = {{"mistral-7b", 32, 4096, 32, 8, 128, 14336, 32000}};
constexpr Row kMistral[] = {
    {"mistral-7b-v0.3", 32, 4096, 32, 8, 128, 14336, 32768},
    {"mistral-nemo-12b", 40, 5120, 32, 8, 128, 14336, 131072},
    {"mistral-small-24b", 40, 5120, 32, 8, 128, 32768, 131072},
    {"mistral-large-123b", 88, 12288, 96, 8, 128, 28672, 32768},
};
constexpr Row kGemma[] = {
    {"gemma-2b", 18, 2048, 8, 1, 256, 16384, 256000},
    {"gemma-7b", 28, 3072, 16, 16, 256, 24576, 256000},
};
constexpr Row kGemma2[] = {
    {"gemma2-2b", 26, 2304, 8, 4, 256, 9216, 256000},
    {"gemma2-9b", 42, 3584, 16, 8, 256, 14336, 256000},
    {"gemma2-27b", 46, 4608, 32, 16, 128, 36864, 256000},
};
constexpr Row kGemma3[] = {
    {"gemma3-1b", 26, 1152, 4, 1, 256, 6912, 262144},
    {"gemma3-4b", 34, 2560, 8, 4, 256, 10240, 262208},
    {"gemma3-12b", 48, 3840, 16, 8, 256, 15360, 262208},
    {"gemma3-27b", 62, 5376, 32, 16, 128, 21504, 262208},
};
constexpr Row kQwen25Tied[] = {
    {"qwen2.5-0.5b", 24, 896, 14, 2, 64, 4864, 151936},
    {"qwen2.5-1.5b", 28, 1536, 12, 2, 128, 8960, 151936},
    {"qwen2.5-3b", 36, 2048, 16, 2, 128, 11008, 151936},
};
constexpr Row kQwen25[] = {
    {"qwen2.5-7b", 28, 3584, 28, 4, 128, 18944, 152064},
    {"qwen2.5-14b", 48, 5120, 40, 8, 128, 13824, 152064},
    {"qwen2.5-32b", 64, 5120, 40, 8, 128, 27648, 152064},
    {"qwen2.5-72b", 80, 8192, 64, 8, 128, 29568, 152064},
};
constexpr Row kQwen3Tied[] = {
    {"qwen3-0.6b", 28, 1024, 16, 8, 128, 3072, 151936},
    {"qwen3-1.7b", 28, 2048, 16, 8, 128, 6144, 151936},
    {"qwen3-4b", 36, 2560, 32, 8, 128, 9728, 151936},
};
constexpr Row kQwen3[] = {
    {"qwen3-8b", 36, 4096, 32, 8, 128, 12288, 151936},
    {"qwen3-14b", 40, 5120, 40, 8, 128, 17408, 151936},
    {"qwen3-32b", 64, 5120, 64, 8, 128, 25600, 151936},
};
constexpr Row kMpt[] = {
    {"mpt-125m", 12, 768, 12, 12, 64, 3072, 50368},
    {"mpt-350m", 24, 1024, 16, 16, 64, 4096, 50368},
    {"mpt-760m", 24, 1536, 12, 12, 128, 6144, 50368},
    {"mpt-1b", 24, 2048, 16, 16, 128, 8192, 50368},
    {"mpt-3b", 32, 2560, 20, 20, 128, 10240, 50368},
    {"mpt-7b", 32, 4096, 32, 32, 128, 16384, 50368},
    {"mpt-13b", 40, 5120, 40, 40, 128, 20480, 50368},
    {"mpt-30b", 48, 7168, 56, 56, 128, 28672, 50368},
    {"mpt-70b", 80, 8192, 64, 64, 128, 32768, 50368},
};
constexpr Row kFalcon[] = {
    {"falcon-7b", 32, 4544, 71, 1, 64, 18176, 65024},
    {"falcon-40b", 60, 8192, 128, 8, 64, 32768, 65024},
    {"falcon-180b", 80, 14848, 232, 8, 64, 59392, 65024},
};
constexpr Row kPhi2[] = {
    {"phi-1.5", 24, 2048, 32, 32, 64, 8192, 51200},
    {"phi-2", 32, 2560, 32, 32, 80, 10240, 51200},
};
constexpr Row kPhi3[] = {
    {"phi-3-mini", 32, 3072, 32, 32, 96, 8192, 32064},
    {"phi-3-medium", 40, 5120, 40, 10, 128, 17920, 32064},
    {"phi-4", 40, 5120, 40, 10, 128, 17920, 100352},
};
constexpr Row kPhi4Mini[] = {{"phi-4-mini", 32, 3072, 24, 8, 128, 8192, 200064}};
constexpr Row kNeox[] = {{"gpt-neox-20b", 44, 6144, 64, 64, 96, 24576, 50432}};
constexpr Row kPythia[] = {
    {"pythia-70m", 6, 512, 8, 8, 64, 2048, 50304},
    {"pythia-160m", 12, 768, 12, 12, 64, 3072, 50304},
    {"pythia-410m", 24, 1024, 16, 16, 64, 4096, 50304},
    {"pythia-1b", 16, 2048, 8, 8, 256, 8192, 50304},
    {"pythia-1.4b", 24, 2048, 16, 16, 128, 8192, 50304},
    {"pythia-2.8b", 32, 2560, 32, 32, 80, 10240, 50304},
    {"pythia-6.9b", 32, 4096, 32, 32, 128, 16384, 50432},
    {"pythia-12b", 36, 5120, 40, 40, 128, 20480, 50688},
};
constexpr Row kOpt[] = {
    {"opt-125m", 12, 768, 12, 12, 64, 3072, 50272},
    {"opt-1.3b", 24, 2048, 32, 32, 64, 8192, 50272},
    {"opt-2.7b", 32, 2560, 32, 32, 80, 10240, 50272},
    {"opt-6.7b", 32, 4096, 32, 32, 128, 16384, 50272},
    {"opt-13b", 40, 5120, 40, 40, 128, 20480, 50272},
    {"opt-30b", 48, 7168, 56, 56, 128, 28672, 50272},
    {"opt-66b", 64, 9216, 72, 72, 128, 36864, 50272},
    {"opt-175b", 96, 12288, 96, 96, 128, 49152, 50272},
};
constexpr Row kBloom[] = {
    {"bloom-560m", 24, 1024, 16, 16, 64, 4096, 250880},
    {"bloom-1.1b", 24, 1536, 16, 16, 96, 6144, 250880},
    {"bloom-1.7b", 24, 2048, 16, 16, 128, 8192, 250880},
    {"bloom-3b", 30, 2560, 32, 32, 80, 10240, 250880},
    {"bloom-7.1b", 30, 4096, 32, 32, 128, 16384, 250880},
    {"bloom-176b", 70, 14336, 112, 112, 128, 57344, 250880},
};

constexpr Family kFamilies[] = {
    {"Radford et al. 2019; openai-community/gpt2* config.json", [](ModelShape& s) { gpt(s, 1024); }, kGpt2},
    {"Brown et al. 2020 (arXiv 2005.14165) table 2.1", [](ModelShape& s) { gpt(s, 2048); }, kGpt3},
    {"Narayanan et al. 2021 (arXiv 2104.04473) table 1", [](ModelShape& s) { gpt(s, 2048); }, kMegatron},
    {"Touvron et al. 2023 (arXiv 2302.13971) table 2; released weights", llama, kLlama},
    {"Touvron et al. 2023 (arXiv 2307.09288); meta-llama/Llama-2-*-hf config.json", llama, kLlama2},
    {"Llama team 2024 (arXiv 2407.21783) table 3", llama, kLlama3},
    {"meta-llama/Llama-3.2-* config.json", llama_tied, kLlama32},
    {"Jiang et al. 2023 (arXiv 2310.06825) table 1", mistral_v01, kMistral01},
    {"mistralai/* config.json", llama, kMistral},
    {"Gemma team 2024 (arXiv 2403.08295) table 1", gemma, kGemma},
    {"Gemma team 2024 (arXiv 2408.00118) table 1", gemma2, kGemma2},
    {"Gemma team 2025 (arXiv 2503.19786); google/gemma-3-* config.json, text part", gemma3, kGemma3},
    {"Qwen team 2024 (arXiv 2412.15115) table 1; Qwen/Qwen2.5-* config.json", qwen2_tied, kQwen25Tied},
    {"Qwen team 2024 (arXiv 2412.15115) table 1; Qwen/Qwen2.5-* config.json", qwen2, kQwen25},
    {"Qwen team 2025 (arXiv 2505.09388) table 1; Qwen/Qwen3-* config.json", qwen3_tied, kQwen3Tied},
    {"Qwen team 2025 (arXiv 2505.09388) table 1; Qwen/Qwen3-* config.json", qwen3, kQwen3},
    {"mosaicml/llm-foundry scripts/train/yamls/pretrain/mpt-*.yaml", mpt, kMpt},
    {"Almazrouei et al. 2023 (arXiv 2311.16867); tiiuae/falcon-* config.json", falcon, kFalcon},
    {"microsoft/phi-1_5, phi-2 config.json", phi2, kPhi2},
    {"Abdin et al. 2024 (arXiv 2404.14219, 2412.08905); config.json", llama, kPhi3},
    {"microsoft/Phi-4-mini-instruct config.json", llama_tied, kPhi4Mini},
    {"Black et al. 2022 (arXiv 2204.06745); EleutherAI/gpt-neox-20b config.json", neox, kNeox},
    {"Biderman et al. 2023 (arXiv 2304.01373) table 1", neox, kPythia},
    {"Zhang et al. 2022 (arXiv 2205.01068) table 1; facebook/opt-* config.json", opt, kOpt},
    {"BigScience 2022 (arXiv 2211.05100) table 3", bloom, kBloom},
};

ModelShape shape_of(const Row& row, Adjust adjust) {
  ModelShape shape;
  shape.name = row.name;
  shape.layers = row.layers;
  shape.hidden = row.hidden;
  shape.heads = row.heads;
  shape.kv_heads = row.kv_heads;
  shape.head_dim = row.head_dim;
  shape.ffn = row.ffn;
  shape.vocab = row.vocab;
  adjust(shape);
  return shape;
}

}  // namespace

std::vector<Preset> list_presets() {
  std::vector<Preset> presets;
  for (const Family& family : kFamilies)
    for (const Row& row : family.rows) presets.push_back({shape_of(row, family.adjust), family.source});
  return presets;
}

Preset find_preset(std::string_view name, const SourcePosition& where, const std::string& key_path) {
  std::vector<std::string> names;
  for (const Family& family : kFamilies)
    for (const Row& row : family.rows) {
      if (name == row.name) return {shape_of(row, family.adjust), family.source};
      names.emplace_back(row.name);
    }
  Diagnostic diagnostic{where, key_path, "no model preset of this name",
                        "a name that `stepcast list` prints", std::string{name}, ""};
  if (const auto nearest = nearest_word(name, names)) diagnostic.hint = "did you mean '" + *nearest + "'?";
  throw UserError{diagnostic};
}

}  // namespace stepcast::workload
