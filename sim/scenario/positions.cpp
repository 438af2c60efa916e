#include "sim/scenario/positions.hpp"

#include <utility>

#include <fmt/format.h>

namespace stepcast::scenario {

Positions::Positions(const Node& root) : root_{root.at} { add(root, ""); }

void Positions::add(const Node& node, const std::string& path) {
  for (const Entry& entry : node.entries) {
    const std::string child = child_path(path, entry.key);
    by_path_.emplace(child, entry.key_at);
    add(entry.value, child);
  }
  for (std::size_t i = 0; i < node.items.size(); ++i) {
    const std::string child = child_path(path, i);
    by_path_.emplace(child, node.items[i].at);
    add(node.items[i], child);
  }
}

SourcePosition Positions::of(const std::string& path) const {
  std::string prefix = path;
  while (!prefix.empty()) {
    const auto found = by_path_.find(prefix);
    if (found != by_path_.end()) return found->second;
    const std::size_t cut = prefix.find_last_of(".[");
    prefix.resize(cut == std::string::npos ? 0 : cut);
  }
  return root_;
}

std::string Positions::cite(const std::string& path) const {
  const auto found = by_path_.find(path);
  if (found == by_path_.end()) return path + ", default";
  if (found->second.line == 0) return fmt::format("{}, from {}", path, found->second.file);
  return fmt::format("{}, line {}", path, found->second.line);
}

Diagnostic Positions::error(const std::string& path, std::string problem, std::string expected, std::string got,
                            std::string hint) const {
  return {.where = of(path),
          .path = path,
          .problem = std::move(problem),
          .expected = std::move(expected),
          .got = std::move(got),
          .hint = std::move(hint)};
}

Diagnostic Positions::located(Diagnostic diagnostic) const {
  if (diagnostic.where.file.empty()) diagnostic.where = of(diagnostic.path);
  return diagnostic;
}

}  // namespace stepcast::scenario
