// models/workload/hf_vision.hpp — the vision part of a multimodal config.json.
#pragma once

#include <optional>

#include "models/workload/json_reader.hpp"
#include "models/workload/model_shape.hpp"

namespace stepcast::workload {

// Qwen3-VL, Gemma 3 (SigLIP) and Llama 4; empty: there is none, or its family is not known. Values that a file
// leaves out are those of the family's class in transformers. `text` is the decoder.
std::optional<VisionTower> read_vision(JsonObject& config, const ModelShape& text);

}  // namespace stepcast::workload
