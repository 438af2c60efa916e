// sim/scenario/node.hpp — a YAML file as plain data: what was written and where. yaml-cpp fills it
// in one place (yaml.cpp) and is never seen elsewhere. Duplicate keys, anchors, aliases, merge keys
// and tags have been refused by then.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/diagnostic.hpp"

namespace stepcast::scenario {

enum class NodeKind : std::uint8_t { kNothing, kScalar, kList, kMapping };

struct Entry;

struct Node {
  NodeKind kind = NodeKind::kNothing;
  std::string scalar;          // text of a scalar, quotes and escapes resolved
  bool quoted = false;         // was in quotes or a block scalar: never a number
  bool refused = false;        // an error has been reported for it: readers pass over it
  std::vector<Node> items;     // of a list
  std::vector<Entry> entries;  // of a mapping, in the file's order
  SourcePosition at;           // of the value; errors name the key's position where there is one

  // nullptr when this is no mapping or has no such key.
  [[nodiscard]] const Entry* find(std::string_view key) const;
  [[nodiscard]] Entry* find(std::string_view key);
};

struct Entry {
  std::string key;
  SourcePosition key_at;
  Node value;
};

// Same content; positions do not count.
bool operator==(const Node& a, const Node& b);

// "a mapping", "a list", "nothing", or the scalar as written, shortened.
std::string describe_node(const Node& node);

// parent + key: "cluster.fabric"; parent + index: "variants[2]".
std::string child_path(std::string_view parent, std::string_view key);
std::string child_path(std::string_view parent, std::size_t index);

}  // namespace stepcast::scenario
