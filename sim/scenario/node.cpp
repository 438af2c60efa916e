#include "sim/scenario/node.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace stepcast::scenario {

const Entry* Node::find(std::string_view key) const {
  const auto found = std::find_if(entries.begin(), entries.end(), [&](const Entry& e) { return e.key == key; });
  return found == entries.end() ? nullptr : &*found;
}

Entry* Node::find(std::string_view key) {
  return const_cast<Entry*>(static_cast<const Node*>(this)->find(key));
}

bool operator==(const Node& a, const Node& b) {
  if (a.kind != b.kind || a.scalar != b.scalar || a.items != b.items) return false;
  return std::equal(a.entries.begin(), a.entries.end(), b.entries.begin(), b.entries.end(),
                    [](const Entry& x, const Entry& y) { return x.key == y.key && x.value == y.value; });
}

std::string describe_node(const Node& node) {
  constexpr std::size_t kShown = 60;
  switch (node.kind) {
    case NodeKind::kNothing: return "nothing";
    case NodeKind::kList: return node.items.empty() ? "an empty list" : "a list";
    case NodeKind::kMapping: return node.entries.empty() ? "an empty mapping" : "a mapping";
    case NodeKind::kScalar: break;
  }
  std::string shown;
  for (const char c : node.scalar.substr(0, kShown)) {
    shown += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
  }
  if (node.scalar.size() > kShown) shown += "...";
  return node.quoted || shown.empty() ? fmt::format("\"{}\"", shown) : shown;
}

std::string child_path(std::string_view parent, std::string_view key) {
  return parent.empty() ? std::string{key} : fmt::format("{}.{}", parent, key);
}

std::string child_path(std::string_view parent, std::size_t index) {
  return fmt::format("{}[{}]", parent, index);
}

}  // namespace stepcast::scenario
