// sim/scenario/load.hpp — scenario files and their variants, read, overridden and checked.
//
//   variants:
//     - {name: roce-100, cluster: {fabric: {nic: roce-100}}}     # a name and the keys that differ
//
// Order: the file, then every --set, then the variant's own keys. Each variant is a full scenario.
#pragma once

#include <string>
#include <vector>

#include "sim/scenario/positions.hpp"
#include "sim/scenario/scenario.hpp"

namespace stepcast::scenario {

struct Loaded {
  Scenario scenario;    // paths resolved; a variant's has no `variants`, and is named "<file's name>/<variant>"
  Positions where;      // of every key, for errors found later
  std::string variant;  // its name; empty for the file itself
};

// The file itself; its variants are checked, too. Throws UserError with every mistake found.
Loaded load_scenario(const std::string& path, const std::vector<std::string>& sets = {});

// Each variant in the file's order; without `variants:`, the file itself.
std::vector<Loaded> load_variants(const std::string& path, const std::vector<std::string>& sets = {});

// The same from text; `path` names it in errors and is where relative paths start.
Loaded load_scenario_text(const std::string& text, const std::string& path, const std::vector<std::string>& sets = {});
std::vector<Loaded> load_variants_text(const std::string& text, const std::string& path,
                                       const std::vector<std::string>& sets = {});

// `value` from the folder of `file`, else as given, whichever exists; as given when neither does.
std::string resolve_path(const std::string& value, const std::string& file);

}  // namespace stepcast::scenario
