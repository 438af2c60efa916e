// models/workload/hf_config.hpp — a Hugging Face config.json as a ModelShape.
//
// Model    the keys of each family's configuration class in transformers, with that class's
//          published defaults for keys a file leaves out; layers, hidden size and heads must be
//          there, but for Gemma, whose files rely on the class (sparse text_config)
// Families GPT-2, GPT-BigCode; Llama, Mistral; Gemma 1-3; Qwen 1-3, MiMo; Falcon; Phi 1-4; GPT-NeoX;
//          MPT; OPT; BLOOM. Multimodal files: the text part, said so in ModelShape::note
// Source   huggingface/transformers src/transformers/models/*/configuration_*.py
// Refuses  mixtures of experts, latent attention (MLA), state-space and linear-attention hybrids,
//          layers that differ in shape, encoders: never approximated by a dense model
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
