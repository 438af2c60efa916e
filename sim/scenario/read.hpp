// sim/scenario/read.hpp — YAML into plain structs, driven by their key lists (key.hpp).
//
//   const auto gpus = read_yaml_file<std::map<std::string, Gpu>>("gpus.yaml");   // throws UserError
//
// Every mistake of the file is collected: unknown, missing and duplicate keys, wrong kinds, missing
// and wrong units, values out of range; each with the 1-based position of its key and dotted path.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/base/diagnostic.hpp"
#include "sim/base/file.hpp"
#include "sim/scenario/key.hpp"
#include "sim/scenario/kinds.hpp"
#include "sim/scenario/node.hpp"
#include "sim/scenario/yaml.hpp"

namespace stepcast::scenario {

// Where a value stands, for its errors: key position and dotted path.
struct Place {
  SourcePosition where;
  std::string path;
};

inline constexpr const char* kUnknownKey = "unknown key";
inline constexpr const char* kMissingKey = "missing key";
inline constexpr const char* kSection = "a mapping";

// Scalars. Each adds at most one diagnostic and leaves `out` alone when the value is refused.
bool read_value(const Node&, const Place&, const Rule&, Diagnostics&, std::int64_t& out);
bool read_value(const Node&, const Place&, const Rule&, Diagnostics&, std::int32_t& out);
bool read_value(const Node&, const Place&, const Rule&, Diagnostics&, double& out);
bool read_value(const Node&, const Place&, const Rule&, Diagnostics&, bool& out);
bool read_value(const Node&, const Place&, const Rule&, Diagnostics&, std::string& out);
// A part of the file kept as it was written.
bool read_value(const Node&, const Place&, const Rule&, Diagnostics&, Node& out);

// The base-unit value, already within the rule's bounds.
std::optional<double> read_quantity(const Node&, const Place&, const Rule&, Diagnostics&, Dimension);
// Index into `candidates`.
std::optional<std::size_t> read_word(const Node&, const Place&, Diagnostics&, const std::vector<std::string>& candidates);

// "2026-11-30", and a day that there is.
bool is_day(const std::string& text);

void wrong_kind(const Node&, const Place&, const std::string& expected, Diagnostics&);

// One mapping being read. `key` is called once for each key of the struct, then finish().
class MappingReader {
 public:
  MappingReader(const Node& mapping, Place place, Diagnostics& diagnostics)
      : mapping_{mapping}, place_{std::move(place)}, diagnostics_{diagnostics} {}

  template <class T>
  void key(const char* name, T& member, const char* sentence, const Rule& rule = {});

  // Reports unknown keys, then missing ones (but not one whose misspelling was just reported).
  void finish();

 private:
  struct Missing {
    std::string key;
    std::string sentence;
  };

  const Node& mapping_;
  Place place_;
  Diagnostics& diagnostics_;
  std::vector<std::string> known_;
  std::vector<Missing> missing_;
};

template <IsQuantity T>
bool read_value(const Node& node, const Place& place, const Rule& rule, Diagnostics& diagnostics, T& out) {
  const auto base = read_quantity(node, place, rule, diagnostics, DimensionOf<T>::value);
  if (!base) return false;
  if constexpr (std::is_same_v<T, Duration>) {
    out = Duration::picoseconds(static_cast<std::int64_t>(*base));
  } else if constexpr (std::is_same_v<T, Bytes>) {
    out = Bytes{static_cast<std::int64_t>(*base)};
  } else {
    out = T::from_si(*base);
  }
  return true;
}

template <IsWord T>
bool read_value(const Node& node, const Place& place, const Rule&, Diagnostics& diagnostics, T& out) {
  std::vector<std::string> candidates;
  std::vector<T> values;
  for_each_word<T>([&](const std::string& text, T value) {
    candidates.push_back(text);
    values.push_back(value);
  });
  const auto index = read_word(node, place, diagnostics, candidates);
  if (index) out = values[*index];
  return index.has_value();
}

template <class T>
bool read_value(const Node& node, const Place& place, const Rule& rule, Diagnostics& diagnostics, T& out) {
  if constexpr (IsOptional<T>) {
    typename T::value_type value{};
    const bool good = read_value(node, place, rule, diagnostics, value);
    out = std::move(value);
    return good;
  } else if constexpr (IsList<T>) {
    if (node.kind != NodeKind::kList) {
      wrong_kind(node, place, "a list", diagnostics);
      return false;
    }
    if (rule.is_filled && node.items.empty()) {
      diagnostics.add({.where = place.where, .path = place.path, .problem = "empty list", .expected = "at least one item"});
    }
    out.clear();
    bool good = true;
    for (std::size_t i = 0; i < node.items.size(); ++i) {
      typename T::value_type value{};
      good &= read_value(node.items[i], Place{node.items[i].at, child_path(place.path, i)}, rule, diagnostics, value);
      out.push_back(std::move(value));
    }
    return good;
  } else if constexpr (IsMap<T>) {
    if (node.kind != NodeKind::kMapping) {
      wrong_kind(node, place, "a mapping", diagnostics);
      return false;
    }
    out.clear();
    bool good = true;
    for (const Entry& entry : node.entries) {
      typename T::mapped_type value{};
      good &= read_value(entry.value, Place{entry.key_at, child_path(place.path, entry.key)}, rule, diagnostics, value);
      out.emplace(entry.key, std::move(value));
    }
    return good;
  } else {
    // A struct. A section with nothing in it is one whose keys are all commented out.
    if (node.refused) return false;
    if (node.kind != NodeKind::kMapping && node.kind != NodeKind::kNothing) {
      wrong_kind(node, place, IsFigure<T> ? "a mapping {value, basis, source}" : kSection, diagnostics);
      return false;
    }
    const std::size_t before = diagnostics.list().size();
    MappingReader reader{node, place, diagnostics};
    if constexpr (IsFigure<T>) {
      Rule value_rule = rule;
      value_rule.is_required = true;
      reader.key("value", out.value, "the figure, with its unit", value_rule);
      reader.key("basis", out.basis, "the kind of evidence", required());
      reader.key("source", out.source, "where the figure stands", required().not_empty());
      if constexpr (IsDatedFigure<T>) {
        reader.key("plus_minus", out.plus_minus, "one standard deviation, in the figure's unit", at_least(0));
        reader.key("date", out.date, "the day of the evidence", dated());
      }
    } else {
      visit_struct(reader, out);
    }
    reader.finish();
    return diagnostics.list().size() == before;
  }
}

template <class T>
void MappingReader::key(const char* name, T& member, const char* sentence, const Rule& rule) {
  known_.emplace_back(name);
  const Entry* entry = mapping_.find(name);
  if (entry == nullptr) {
    if (rule.is_required) missing_.push_back({name, sentence});
    return;
  }
  read_value(entry->value, Place{entry->key_at, child_path(place_.path, name)}, rule, diagnostics_, member);
}

// The tree as a T; whatever could be read, with every mistake added to `diagnostics`.
template <class T>
T read_tree(const Node& root, Diagnostics& diagnostics) {
  T out{};
  SourcePosition where = root.at;
  if (root.kind == NodeKind::kNothing) {
    diagnostics.add({.where = {where.file, 0, 0}, .problem = "the file is empty"});
    return out;
  }
  read_value(root, Place{where, ""}, Rule{}, diagnostics, out);
  return out;
}

template <class T>
T read_yaml_text(const std::string& text, const std::string& source, Diagnostics& diagnostics) {
  const auto root = parse_yaml(text, source, diagnostics);
  return root ? read_tree<T>(*root, diagnostics) : T{};
}

template <class T>
T read_yaml_text(const std::string& text, const std::string& source) {
  Diagnostics diagnostics;
  T out = read_yaml_text<T>(text, source, diagnostics);
  diagnostics.throw_if_any();
  return out;
}

template <class T>
T read_yaml_file(const std::string& path, Diagnostics& diagnostics) {
  return read_yaml_text<T>(read_file(path), path, diagnostics);
}

template <class T>
T read_yaml_file(const std::string& path) {
  return read_yaml_text<T>(read_file(path), path);
}

}  // namespace stepcast::scenario
