// models/workload/presets.hpp — published model shapes by name.
// Source   beside each family in presets.cpp, and in Preset::source
// Ignores  shapes that are not one uniform dense decoder: OPT-350M (projected embeddings), Phi-3
//          small (block-sparse attention), Llama 3.2 vision
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/workload/model_shape.hpp"
#include "sim/base/diagnostic.hpp"

namespace stepcast::workload {

struct Preset {
  ModelShape shape;  // shape.name is the preset's name
  std::string source;
};

// In the table's order: by family, small to large.
std::vector<Preset> list_presets();

// Throws UserError naming `key_path` at `where`, with the nearest name, when there is none.
Preset find_preset(std::string_view name, const SourcePosition& where = {},
                   const std::string& key_path = "");

}  // namespace stepcast::workload
