// The effective form and the starter: YAML out of described structs.
#include <string>

#include <fmt/format.h>

#include "sim/base/text.hpp"
#include "sim/scenario/write.hpp"

namespace stepcast::scenario {
namespace {

std::string flow_text(const Node& node) {
  switch (node.kind) {
    case NodeKind::kNothing: return "null";
    case NodeKind::kScalar: return yaml_scalar(node.scalar, node.quoted);
    case NodeKind::kList: {
      std::vector<std::string> items;
      for (const Node& item : node.items) items.push_back(flow_text(item));
      return fmt::format("[{}]", join(items, ", "));
    }
    case NodeKind::kMapping: break;
  }
  std::vector<std::string> entries;
  for (const Entry& entry : node.entries) {
    entries.push_back(fmt::format("{}: {}", yaml_scalar(entry.key), flow_text(entry.value)));
  }
  return fmt::format("{{{}}}", join(entries, ", "));
}

bool is_scalar(ValueKind kind) {
  return kind != ValueKind::kStruct && kind != ValueKind::kList && kind != ValueKind::kMap && kind != ValueKind::kAnything;
}

// Everything on one line: lists of scalars, parts kept as written, items of lists.
std::string flow_value(const Described& d) {
  if (d.kind == ValueKind::kAnything) return flow_text(d.tree);
  if (is_scalar(d.kind)) return d.value;
  std::vector<std::string> parts;
  for (const Described& child : d.children) {
    if (!child.present) continue;
    const std::string value = flow_value(child);
    parts.push_back(d.kind == ValueKind::kList ? value : fmt::format("{}: {}", yaml_scalar(child.key), value));
  }
  const std::string inside = join(parts, ", ");
  return d.kind == ValueKind::kList ? "[" + inside + "]" : "{" + inside + "}";
}

// {value: 1.87 us, basis: measured, source: "..."}: a line of its own.
bool is_figure(const Described& d) {
  return d.kind == ValueKind::kStruct && d.children.size() >= 3 && d.children[0].key == "value" && d.children[1].key == "basis" && d.children[2].key == "source";
}

void print_keys(const std::vector<Described>& keys, const std::string& indent, std::string& out) {
  for (const Described& d : keys) {
    if (!d.present) continue;
    const std::string head = indent + yaml_scalar(d.key) + ":";
    if (is_figure(d)) {
      out += fmt::format("{} {}\n", head, flow_value(d));
    } else if (d.kind == ValueKind::kStruct || d.kind == ValueKind::kMap) {
      if (d.children.empty()) {
        out += head + " {}\n";
      } else {
        out += head + "\n";
        print_keys(d.children, indent + "  ", out);
      }
    } else if (d.kind == ValueKind::kList && !d.children.empty() && !is_scalar(d.children.front().kind)) {
      out += head + "\n";
      for (const Described& item : d.children) out += fmt::format("{}  - {}\n", indent, flow_value(item));
    } else {
      out += fmt::format("{} {}\n", head, flow_value(d));
    }
  }
}

void comment(const std::string& text, const std::string& indent, std::string& out) {
  constexpr std::size_t kWidth = 96;
  std::string line;
  for (const std::string& word : split(text, ' ')) {
    if (!line.empty() && indent.size() + 2 + line.size() + 1 + word.size() > kWidth) {
      out += fmt::format("{}# {}\n", indent, line);
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
  }
  out += fmt::format("{}# {}\n", indent, line);
}

// `commented`: the key is shown, and left at its default.
void start_keys(const std::vector<Described>& keys, const std::string& indent, bool commented, std::string& out) {
  bool after_section = false;
  for (const Described& d : keys) {
    if (after_section && d.kind != ValueKind::kStruct && !commented) out += "\n";
    after_section = d.kind == ValueKind::kStruct;
    const bool hidden = commented || (d.optional && !d.rule.is_in_starter) || (d.kind == ValueKind::kList && d.children.empty());
    const std::string head = indent + (hidden ? "# " : "") + d.key + ":";
    if (d.kind == ValueKind::kStruct && commented) {
      // Still left at its default when the section around it is switched on.
      out += fmt::format("{}# {}:\n", indent, d.key);
      start_keys(d.children, indent + "#   ", true, out);
      continue;
    }
    if (d.kind == ValueKind::kStruct) {
      out += "\n";
      comment(d.sentence, indent, out);
      out += head + "\n";
      // Inside a section that is commented out the keys follow its '#'.
      start_keys(d.children, indent + (hidden ? "#   " : "  "), hidden, out);
      continue;
    }
    std::string text = d.sentence;
    if (d.kind == ValueKind::kWord) text += fmt::format(" One of {}.", join(d.words, ", "));
    if (!d.rule.allowed.empty()) text += fmt::format(" One of {}.", join(d.rule.allowed, ", "));
    const bool has_default = !d.rule.is_required && !d.optional && d.kind != ValueKind::kList;
    if (has_default && !d.rule.example_text.empty()) text += fmt::format(" Default: {}.", d.value);
    if (!commented) comment(text, indent, out);
    const std::string value = !d.rule.example_text.empty() ? d.rule.example_text : flow_value(d);
    const bool again = commented && (d.optional || d.kind == ValueKind::kList) && !d.rule.is_in_starter;
    out += commented ? fmt::format("{}{}{}: {}\n", indent, again ? "# " : "", d.key, value)
                     : fmt::format("{} {}\n", head, value);
  }
}

}  // namespace

std::string print_yaml(const Described& object) {
  std::string out;
  print_keys(object.children, "", out);
  return out;
}

std::string starter_scenario() {
  std::string out =
      "# A Stepcast scenario: one training step of a model on a cluster. Change what you need, then run\n"
      "#   stepcast simulate THIS_FILE\n"
      "# Quantities carry units: 400 Gb/s is bits, 50 GB/s is bytes, 80 GiB, 1.5 us. Keys that start with\n"
      "# '#' are left at what their text says.\n";
  start_keys(describe(Scenario{}).children, "", false, out);
  return out;
}

}  // namespace stepcast::scenario
