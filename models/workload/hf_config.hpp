// models/workload/hf_config.hpp — a Hugging Face config.json as a ModelShape.
//
// Model    the keys of each family's configuration class in transformers, with that class's
//          published defaults for keys a file leaves out; layers, hidden size and heads must be
//          there, but for Gemma, whose files rely on the class (sparse text_config)
// Families GPT-2, GPT-BigCode; Llama, Mistral; Gemma 1-3; Qwen 1-3, MiMo; Falcon; Phi 1-4; GPT-NeoX;
//          MPT; OPT; BLOOM. With experts: Mixtral, Phi-MoE, OLMoE, DBRX, Qwen2/3-MoE, GLM-4.5, Llama 4,
//          gpt-oss, MiniMax-M2, DeepSeek-V2/V3, Kimi-K2. Multimodal files: the text part, said so in ModelShape::note
// Source   huggingface/transformers src/transformers/models/*/configuration_*.py
// Refuses  state-space and linear-attention hybrids, attention chosen by an indexer, layers that differ
//          in shape, encoders: never approximated by another model
// Ignores  dtype, quantization, rope scaling, soft-capping, dropout rates, vision and audio towers
// Tests    unit/workload_hf_test, golden/hf
#pragma once

#include <string>
#include <string_view>

#include "models/workload/model_shape.hpp"

namespace stepcast::workload {

// `file` names the source in messages; the shape's name is the file's (its folder's for a plain
// config.json). Throws UserError with everything that is wrong.
ModelShape read_hf_config(std::string_view text, const std::string& file);

// Reads the file first. Throws UserError when that fails, too.
ModelShape load_hf_config(const std::string& path);

}  // namespace stepcast::workload
