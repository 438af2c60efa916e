#include "sim/scenario/overlay.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "sim/base/text.hpp"
#include "sim/scenario/yaml.hpp"

namespace stepcast::scenario {
namespace {

struct Step {
  std::string key;                   // a key, or
  std::optional<std::size_t> index;  // an item of a list
};

// "variants[0].name" -> variants, [0], name. No value when malformed.
std::optional<std::vector<Step>> parse_path(const std::string& path) {
  std::vector<Step> steps;
  for (const std::string& part : split(path, '.')) {
    const std::size_t bracket = part.find('[');
    const std::string key = part.substr(0, bracket);
    if (key.empty() || key.find(']') != std::string::npos) return std::nullopt;
    steps.push_back({key, std::nullopt});
    std::string rest = bracket == std::string::npos ? "" : part.substr(bracket);
    while (!rest.empty()) {
      const std::size_t close = rest.find(']');
      if (rest[0] != '[' || close == std::string::npos || close < 2 || close > 9) return std::nullopt;
      const std::string digits = rest.substr(1, close - 1);
      if (digits.find_first_not_of("0123456789") != std::string::npos) return std::nullopt;
      steps.push_back({{}, static_cast<std::size_t>(std::stoul(digits))});
      rest.erase(0, close + 1);
    }
  }
  return steps;
}

}  // namespace

void apply_set(Node& root, const std::string& assignment, Diagnostics& diagnostics) {
  if (std::any_of(assignment.begin(), assignment.end(), [](unsigned char c) { return c < 0x20 && c != '\n' && c != '\t'; })) {
    diagnostics.add({.where = {"--set", 0, 0}, .problem = "a control character in a key or value"});
    return;
  }
  const std::string source = "--set " + assignment;
  const SourcePosition here{source, 0, 0};
  const std::size_t equals = assignment.find('=');
  if (equals == std::string::npos || equals == 0) {
    diagnostics.add({.where = here, .problem = "no key and value", .expected = "path.to.key=value, such as parallel.tp=4"});
    return;
  }
  const std::string path = assignment.substr(0, equals);
  const auto steps = parse_path(path);
  if (!steps) {
    diagnostics.add({.where = here, .path = path, .problem = "not a path", .expected = "keys joined by '.', items as list[0]"});
    return;
  }
  auto value = parse_yaml_value(assignment.substr(equals + 1), source, diagnostics);
  if (!value) return;

  Node* at = &root;
  std::string walked;
  for (const Step& step : *steps) {
    if (step.index) {
      if (at->kind != NodeKind::kList || *step.index >= at->items.size()) {
        diagnostics.add({.where = here,
                         .path = child_path(walked, *step.index),
                         .problem = "no such item",
                         .expected = at->items.empty() ? fmt::format("{} is not a list with items", walked)
                                                       : fmt::format("an index from 0 to {}", at->items.size() - 1)});
        return;
      }
      walked = child_path(walked, *step.index);
      at = &at->items[*step.index];
      continue;
    }
    if (at->kind != NodeKind::kMapping) {
      *at = Node{};
      at->kind = NodeKind::kMapping;
      at->at = here;
    }
    walked = child_path(walked, step.key);
    Entry* entry = at->find(step.key);
    if (entry == nullptr) {
      at->entries.push_back({step.key, here, Node{}});
      entry = &at->entries.back();
      entry->value.at = here;
    }
    if (&step == &steps->back()) entry->key_at = here;
    at = &entry->value;
  }
  *at = std::move(*value);
}

void overlay(Node& base, const Node& changes) {
  if (base.kind != NodeKind::kMapping || changes.kind != NodeKind::kMapping) {
    base = changes;
    return;
  }
  for (const Entry& change : changes.entries) {
    Entry* entry = base.find(change.key);
    if (entry == nullptr) {
      base.entries.push_back(change);
      continue;
    }
    const bool merges = entry->value.kind == NodeKind::kMapping && change.value.kind == NodeKind::kMapping;
    if (!merges) entry->key_at = change.key_at;
    overlay(entry->value, change.value);
  }
}

}  // namespace stepcast::scenario
