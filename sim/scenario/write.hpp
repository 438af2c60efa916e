// sim/scenario/write.hpp — what is written from the key lists: the effective scenario, a starter
// file, the reference page and the JSON Schema.
#pragma once

#include <string>

#include "sim/scenario/describe.hpp"
#include "sim/scenario/scenario.hpp"

namespace stepcast::scenario {

// YAML with every key and its value; reads back to the same struct. Optional keys without a value
// are left out. Paths of scenario files come out resolved.
std::string print_yaml(const Described& object);
template <class T>
std::string print_effective(const T& object) {
  return print_yaml(describe(object));
}

// A scenario that loads as it stands, each key with its sentence above it; `stepcast init`.
std::string starter_scenario();

// The page docs/guide/scenario_reference.md.
std::string reference_page();

// JSON Schema (draft 2020-12) of scenario files, for completion in editors.
std::string scenario_json_schema();

}  // namespace stepcast::scenario
