#include "sim/scenario/load.hpp"

#include <algorithm>
#include <filesystem>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "sim/base/file.hpp"
#include "sim/scenario/check.hpp"
#include "sim/scenario/hints.hpp"
#include "sim/scenario/include.hpp"
#include "sim/scenario/overlay.hpp"
#include "sim/scenario/read.hpp"
#include "sim/scenario/yaml.hpp"

namespace stepcast::scenario {
namespace {

using Spot = std::tuple<std::string, int, int>;
Spot spot_of(const SourcePosition& at) { return {at.file, at.line, at.column}; }

bool same(const Diagnostic& a, const Diagnostic& b) {
  return spot_of(a.where) == spot_of(b.where) && a.path == b.path && a.problem == b.problem && a.got == b.got &&
         a.expected == b.expected;
}

struct Reading {
  Loaded loaded;
  std::vector<Diagnostic> mistakes;
};

// A complete tree, read and cross-checked. Combinations are judged only when every value was read.
Reading read_scenario(Node tree, const std::string& path) {
  Reading out;
  Diagnostics diagnostics;
  include_network(tree, path, diagnostics);
  out.loaded.scenario = read_tree<Scenario>(tree, diagnostics);
  out.loaded.where = Positions{tree};
  if (diagnostics.empty()) check_scenario(out.loaded.scenario, out.loaded.where, diagnostics);
  out.mistakes.assign(diagnostics.list().begin(), diagnostics.list().end());
  // A key in the wrong place, or under another name, is one mistake, not an unknown and a missing key.
  std::set<std::string> meant;
  for (Diagnostic& d : out.mistakes) {
    if (d.problem != kUnknownKey || !d.hint.empty()) continue;
    KeyHint hint = hint_for_key(d.path.substr(d.path.rfind('.') + 1));
    d.hint = std::move(hint.text);
    meant.insert(hint.paths.begin(), hint.paths.end());
  }
  std::erase_if(out.mistakes, [&](const Diagnostic& d) { return d.problem == kMissingKey && meant.contains(d.path); });
  Scenario& s = out.loaded.scenario;
  if (s.model.hf) s.model.hf = resolve_path(*s.model.hf, path);
  if (s.parallel.schedule_file) s.parallel.schedule_file = resolve_path(*s.parallel.schedule_file, path);
  if (s.profile) s.profile = resolve_path(*s.profile, path);
  if (is_node_file(s.cluster.node)) s.cluster.node = resolve_path(s.cluster.node, path);
  return out;
}

void collect_spots(const Node& node, std::set<Spot>& spots) {
  for (const Entry& entry : node.entries) {
    spots.insert(spot_of(entry.key_at));
    collect_spots(entry.value, spots);
  }
  for (const Node& item : node.items) {
    spots.insert(spot_of(item.at));
    collect_spots(item, spots);
  }
}

// The variant's name; adds a diagnostic when the item cannot be a variant.
std::optional<std::string> variant_name(const Node& item, const std::string& path, std::set<std::string>& taken,
                                        Diagnostics& diagnostics) {
  const auto refuse = [&](SourcePosition where, std::string at, std::string problem, std::string expected) {
    diagnostics.add({.where = std::move(where), .path = std::move(at), .problem = std::move(problem), .expected = std::move(expected)});
    return std::nullopt;
  };
  if (item.kind != NodeKind::kMapping) {
    wrong_kind(item, Place{item.at, path}, "a name and the keys that differ, such as {name: x, parallel: {tp: 4}}", diagnostics);
    return std::nullopt;
  }
  const std::string name_path = child_path(path, "name");
  const Entry* name = item.find("name");
  if (name == nullptr) return refuse(item.at, name_path, kMissingKey, "What the variant is called in tables.");
  std::string text;
  if (!read_value(name->value, Place{name->key_at, name_path}, not_empty(), diagnostics, text)) return std::nullopt;
  if (!taken.insert(text).second) {
    return refuse(name->key_at, name_path, fmt::format("a second variant called '{}'", text), "a name of its own");
  }
  if (const Entry* inner = item.find("variants")) {
    return refuse(inner->key_at, child_path(path, "variants"), "variants do not nest", "one list at the top of the file");
  }
  return text;
}

struct Family {
  Reading base;
  std::vector<Reading> variants;
  std::vector<Diagnostic> list_mistakes;  // in the `variants:` list itself
};

Family read_family(const std::string& text, const std::string& path, const std::vector<std::string>& sets) {
  Diagnostics diagnostics;
  auto tree = parse_yaml(text, path, diagnostics);
  if (!tree) diagnostics.throw_if_any();
  if (tree->kind == NodeKind::kNothing) {
    diagnostics.add({.where = {path, 0, 0},
                     .problem = "the file is empty",
                     .hint = "'stepcast init' writes a scenario to start from"});
    diagnostics.throw_if_any();
  }
  for (const std::string& set : sets) apply_set(*tree, set, diagnostics);

  Family family;
  const Entry* list = tree->find("variants");
  const Node variants = list == nullptr ? Node{} : list->value;
  family.base = read_scenario(*tree, path);
  Node bare = *tree;
  std::erase_if(bare.entries, [](const Entry& e) { return e.key == "variants"; });

  std::set<std::string> taken;
  for (std::size_t i = 0; i < variants.items.size(); ++i) {
    const Node& item = variants.items[i];
    const std::string item_path = child_path("variants", i);
    const auto name = variant_name(item, item_path, taken, diagnostics);
    if (!name) continue;
    Node changes = item;
    std::erase_if(changes.entries, [](const Entry& e) { return e.key == "name"; });
    Node merged = bare;
    overlay(merged, changes);
    Reading reading = read_scenario(merged, path);
    reading.loaded.variant = *name;
    reading.loaded.scenario.name = fmt::format("{}/{}", reading.loaded.scenario.name, *name);
    // A mistake the variant wrote is named by its place in the file; one that it causes elsewhere
    // says which variant it is.
    std::set<Spot> own;
    collect_spots(changes, own);
    for (Diagnostic& d : reading.mistakes) {
      const bool of_base = std::any_of(family.base.mistakes.begin(), family.base.mistakes.end(),
                                       [&](const Diagnostic& b) { return same(b, d); });
      if (own.contains(spot_of(d.where))) {
        d.path = child_path(item_path, d.path);
      } else if (!of_base) {
        d.problem += fmt::format(" (variant {})", *name);
      }
    }
    family.variants.push_back(std::move(reading));
  }
  family.list_mistakes.assign(diagnostics.list().begin(), diagnostics.list().end());
  return family;
}

void throw_mistakes(const Family& family, bool base_counts) {
  std::vector<Diagnostic> all = family.list_mistakes;
  const auto add = [&](const Reading& reading) {
    for (const Diagnostic& d : reading.mistakes) {
      if (std::none_of(all.begin(), all.end(), [&](const Diagnostic& seen) { return same(seen, d); })) all.push_back(d);
    }
  };
  if (base_counts) add(family.base);
  for (const Reading& reading : family.variants) add(reading);
  if (!all.empty()) throw UserError(std::move(all));
}

}  // namespace

Loaded load_scenario_text(const std::string& text, const std::string& path, const std::vector<std::string>& sets) {
  Family family = read_family(text, path, sets);
  throw_mistakes(family, true);
  return std::move(family.base.loaded);
}

std::vector<Loaded> load_variants_text(const std::string& text, const std::string& path,
                                       const std::vector<std::string>& sets) {
  Family family = read_family(text, path, sets);
  const bool alone = family.variants.empty();
  throw_mistakes(family, alone);
  std::vector<Loaded> out;
  if (alone) out.push_back(std::move(family.base.loaded));
  for (Reading& reading : family.variants) out.push_back(std::move(reading.loaded));
  return out;
}

Loaded load_scenario(const std::string& path, const std::vector<std::string>& sets) {
  return load_scenario_text(read_file(path), path, sets);
}

std::vector<Loaded> load_variants(const std::string& path, const std::vector<std::string>& sets) {
  return load_variants_text(read_file(path), path, sets);
}

std::string resolve_path(const std::string& value, const std::string& file) {
  namespace fs = std::filesystem;
  if (fs::path{value}.is_absolute()) return value;
  std::error_code error;
  const fs::path beside = fs::path{file}.parent_path() / value;
  return fs::exists(beside, error) ? beside.lexically_normal().string() : value;
}

}  // namespace stepcast::scenario
