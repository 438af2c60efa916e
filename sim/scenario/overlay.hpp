// sim/scenario/overlay.hpp — changes on top of a tree: `--set path.to.key=value` and `variants:`.
#pragma once

#include <string>

#include "sim/base/diagnostic.hpp"
#include "sim/scenario/node.hpp"

namespace stepcast::scenario {

// `assignment` is "parallel.tp=4" or "variants[0].name=x"; the value is YAML. Sections on the way
// are made as needed; whether the key exists is the reader's business. Errors name "--set ...".
void apply_set(Node& root, const std::string& assignment, Diagnostics& diagnostics);

// Mappings merge key by key; anything else replaces what was there, position included.
void overlay(Node& base, const Node& changes);

}  // namespace stepcast::scenario
