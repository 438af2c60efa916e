// The reference page: one table a section.
#include <cmath>
#include <string>

#include <fmt/format.h>

#include "sim/base/text.hpp"
#include "sim/scenario/write.hpp"

namespace stepcast::scenario {
namespace {

std::string number_range(const Rule& rule) {
  const bool low = std::isfinite(rule.low);
  const bool high = std::isfinite(rule.high);
  if (low && high) return fmt::format(" from {} to {}", rule.low, rule.high);
  if (low) return fmt::format("{} {}", rule.low_excluded ? " above" : " of at least", rule.low);
  return high ? fmt::format(" of at most {}", rule.high) : "";
}

std::string default_text(const Described& d) {
  if (d.rule.is_required) return "required";
  if (d.optional) return "";
  if (d.kind == ValueKind::kStruct) return "its defaults";
  if (d.kind == ValueKind::kList || d.kind == ValueKind::kMap) return "none";
  return "`" + d.value + "`";
}

void table(const std::vector<Described>& keys, std::string& out) {
  out += "| key | value | default | meaning |\n| --- | --- | --- | --- |\n";
  for (const Described& d : keys) {
    std::string meaning = d.sentence;
    if (!d.rule.example_text.empty() && !d.rule.is_in_starter && d.kind != ValueKind::kStruct) {
      meaning += fmt::format(" Example: `{}`", d.rule.example_text);
    }
    out += fmt::format("| `{}` | {} | {} | {} |\n", d.key, describe_kind(d), default_text(d), meaning);
  }
}

void sections(const std::vector<Described>& keys, const std::string& path, std::string& out) {
  for (const Described& d : keys) {
    if (d.kind != ValueKind::kStruct) continue;
    const std::string name = child_path(path, d.key);
    out += fmt::format("\n## {}\n{}\n\n", name, d.sentence);
    table(d.children, out);
    sections(d.children, name, out);
  }
}

}  // namespace

std::string describe_kind(const Described& d) {
  switch (d.kind) {
    case ValueKind::kWhole:
      return d.rule.version ? fmt::format("{}", *d.rule.version) : "a whole number" + number_range(d.rule);
    case ValueKind::kNumber: return "a number" + number_range(d.rule);
    case ValueKind::kFlag: return "true or false";
    case ValueKind::kText: return d.rule.allowed.empty() ? "text" : join(d.rule.allowed, ", ");
    case ValueKind::kWord: return join(d.words, ", ");
    case ValueKind::kQuantity: return describe_dimension(d.dimension);
    case ValueKind::kStruct: return "a section";
    case ValueKind::kList: return "a list";
    case ValueKind::kMap: return "a mapping";
    case ValueKind::kAnything: return "keys of this file";
  }
  return {};
}

std::string reference_page() {
  const Described root = describe(Scenario{});
  std::string out =
      "# Scenario reference\n"
      "Every key of a scenario file. This page is generated from the code that reads the files; a test compares them.\n"
      "\n"
      "- Quantities are a number and a unit: `400 Gb/s` (bits), `50 GB/s` (bytes), `80 GiB` (2^30), `80 GB` (1e9), `1.5 us`. Capital letters matter.\n"
      "- An unknown key, a missing unit, a wrong type or a combination that cannot be is refused with file, line, column and path.\n"
      "- Any key can be set from the command line: `--set parallel.tp=4`, `--set variants[0].name=x`. Order: the file, then `--set`, then a variant's own keys.\n"
      "- `stepcast simulate FILE --print-scenario` prints the effective scenario, `stepcast init` a file to start from, `stepcast schema` the JSON Schema.\n"
      "\n## Top level\n\n";
  table(root.children, out);
  sections(root.children, "", out);
  return out;
}

}  // namespace stepcast::scenario
