// models/workload/hf_families.hpp — one reader per model family, chosen by model_type. Private to
// models/workload.
#pragma once

#include <string>
#include <vector>

#include "models/workload/json_reader.hpp"
#include "models/workload/model_shape.hpp"

namespace stepcast::workload {

using FamilyReader = void (*)(JsonObject& config, ModelShape& shape);

// Null when the type is unknown.
FamilyReader family_reader(const std::string& model_type);
std::vector<std::string> known_model_types();

// Families with experts; part of the two above.
FamilyReader mixture_reader(const std::string& model_type);
std::vector<std::string> known_mixture_types();

// Reports each trait that makes the model other than what its family's reader takes: experts in a dense
// family, hybrid layers, encoders. True when there was one.
bool refuse_other_architectures(JsonObject& config, const std::string& model_type);

}  // namespace stepcast::workload
