// sim/scenario/yaml.hpp — YAML text to a Node tree, once; and back. The only door to yaml-cpp.
// Refused with a position: duplicate keys, anchors, aliases, merge keys, tags, keys that are not
// words, several documents, and what is not YAML at all (one error, at the place it broke).
#pragma once

#include <optional>
#include <string>

#include "sim/base/diagnostic.hpp"
#include "sim/scenario/node.hpp"

namespace stepcast::scenario {

// Empty text gives a node of kind kNothing. No value when the text is not YAML; other mistakes are
// added to `diagnostics` and the rest of the tree is still returned, so that one run shows them all.
std::optional<Node> parse_yaml(const std::string& text, const std::string& source, Diagnostics& diagnostics);

// As parse_yaml, for a value given on the command line: every position is `source` as a whole.
std::optional<Node> parse_yaml_value(const std::string& text, const std::string& source, Diagnostics& diagnostics);

// A scalar as YAML text that reads back to the same scalar; quoted only where it must be.
std::string yaml_scalar(const std::string& text, bool quoted = false);

}  // namespace stepcast::scenario
