// sim/scenario/describe.hpp — a struct's keys as data: what the key list (key.hpp) says, together
// with the current values. Printer, JSON Schema, reference page and starter file all work from it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "sim/scenario/key.hpp"
#include "sim/scenario/kinds.hpp"
#include "sim/scenario/yaml.hpp"

namespace stepcast::scenario {

enum class ValueKind : std::uint8_t {
  kWhole, kNumber, kFlag, kText, kWord, kQuantity, kStruct, kList, kMap, kAnything
};

struct Described {
  std::string key;
  std::string sentence;
  Rule rule;
  ValueKind kind = ValueKind::kText;
  Dimension dimension = Dimension::kBytes;  // of a quantity
  std::vector<std::string> words;           // of an enum, in the order of its list
  bool optional = false;                    // std::optional
  bool present = true;                      // false: an optional without a value
  std::string value;                        // a scalar as YAML text
  Node tree;                                // of kind kAnything
  std::vector<Described> children;          // keys of a struct; items of a list; entries of a map
  std::vector<Described> element;           // list and map: one default element
};

class Describer {
 public:
  template <class T>
  void key(const char* name, T& member, const char* sentence, Rule rule = {}) {
    Described d = describe_value(member, rule);
    d.key = name;
    d.sentence = sentence;
    d.rule = std::move(rule);
    keys_.push_back(std::move(d));
  }

  [[nodiscard]] std::vector<Described> take() { return std::move(keys_); }

  template <class T>
  static Described describe_value(T& value, const Rule& rule) {
    Described d;
    if constexpr (IsOptional<T>) {
      typename T::value_type fallback{};
      d = describe_value(value ? *value : fallback, rule);
      d.optional = true;
      d.present = value.has_value();
    } else if constexpr (IsWhole<T>) {
      d.kind = ValueKind::kWhole;
      d.value = fmt::format("{}", value);
    } else if constexpr (std::is_same_v<T, double>) {
      d.kind = ValueKind::kNumber;
      d.value = fmt::format("{}", value);
    } else if constexpr (std::is_same_v<T, bool>) {
      d.kind = ValueKind::kFlag;
      d.value = value ? "true" : "false";
    } else if constexpr (std::is_same_v<T, std::string>) {
      d.kind = ValueKind::kText;
      d.value = yaml_scalar(value);
    } else if constexpr (std::is_same_v<T, Node>) {
      d.kind = ValueKind::kAnything;
      d.tree = value;
    } else if constexpr (IsQuantity<T>) {
      d.kind = ValueKind::kQuantity;
      d.dimension = DimensionOf<T>::value;
      d.value = print_quantity(to_base(value), d.dimension);
    } else if constexpr (IsWord<T>) {
      d.kind = ValueKind::kWord;
      for_each_word<T>([&](const std::string& text, T word) {
        d.words.push_back(text);
        if (word == value) d.value = text;
      });
    } else if constexpr (IsList<T>) {
      d.kind = ValueKind::kList;
      typename T::value_type fallback{};
      d.element.push_back(describe_value(fallback, rule));
      for (auto& item : value) d.children.push_back(describe_value(item, rule));
    } else if constexpr (IsMap<T>) {
      d.kind = ValueKind::kMap;
      typename T::mapped_type fallback{};
      d.element.push_back(describe_value(fallback, rule));
      for (auto& [name, item] : value) {
        d.children.push_back(describe_value(item, rule));
        d.children.back().key = name;
      }
    } else {
      d.kind = ValueKind::kStruct;
      Describer inner;
      if constexpr (IsFigure<T>) {
        Rule value_rule = rule;
        value_rule.is_required = true;
        inner.key("value", value.value, "The figure, with its unit.", value_rule);
        inner.key("basis", value.basis, "The kind of evidence.", required());
        inner.key("source", value.source, "Where the figure stands.", required().not_empty());
        if constexpr (IsDatedFigure<T>) {
          inner.key("plus_minus", value.plus_minus, "One standard deviation, in the figure's unit.", at_least(0));
          inner.key("date", value.date, "The day of the evidence.", dated());
        }
      } else {
        visit_struct(inner, value);
      }
      d.children = inner.take();
    }
    return d;
  }

 private:
  std::vector<Described> keys_;
};

template <class T>
Described describe(T object) {
  return Describer::describe_value(object, Rule{});
}

// "a whole number from 1 to 8", "one of bf16, fp16", "a time such as 2 us or 1.5 ms".
std::string describe_kind(const Described& d);

}  // namespace stepcast::scenario
