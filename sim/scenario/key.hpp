// sim/scenario/key.hpp — how a struct lists its keys, once. Every reader and writer of scenario,
// catalogue and profile files is driven by that list:
//
//   struct Batch {
//     std::int64_t global = 0;
//     std::int64_t micro = 1;
//     template <class V>
//     void visit(V& v) {                       // or: template <class V> void visit_keys(V&, Batch&)
//       v.key("global", global, "Sequences per step.", required().at_least(1).example("1024"));
//       v.key("micro", micro, "Sequences per micro-batch.", at_least(1));
//     }
//   };
//
// A key without required() keeps the member's own default when absent. Members may be int64, int,
// double (no unit), bool, std::string, Duration, Bytes, any Quantity, enums, structs with such a
// list, std::optional, std::vector and std::map<std::string, T> of these, and quoted figures:
// structs with members value, basis, source, written {value: 3350 GB/s, basis: datasheet, source: "..."};
// with members plus_minus and date as well, two optional keys more: plus_minus: 40 GB/s, date: 2026-11-30.
// An enum names its words beside its definition:
//
//   constexpr std::array<std::pair<const char*, Colour>, 2> enum_words(Colour) {
//     return {{{"red", Colour::kRed}, {"blue", Colour::kBlue}}};
//   }
#pragma once

#include <array>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace stepcast::scenario {

// What a key demands of its value. Bounds are in SI units; on a list they hold for each item.
struct Rule {
  bool is_required = false;
  bool is_filled = false;                // text or list: at least one character or item
  bool is_date = false;                  // text: a day such as 2026-11-30
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool low_excluded = false;
  std::vector<std::string> allowed;      // words a text may be; empty: any
  std::optional<double> version;         // the one format version that is read
  std::string example_text;              // YAML text shown by `init` and the reference page
  bool is_in_starter = false;            // an optional key that `init` writes out

  Rule&& required() && { is_required = true; return std::move(*this); }
  Rule&& not_empty() && { is_filled = true; return std::move(*this); }
  Rule&& at_least(double bound) && { low = bound; return std::move(*this); }
  Rule&& above(double bound) && { low = bound; low_excluded = true; return std::move(*this); }
  Rule&& at_most(double bound) && { high = bound; return std::move(*this); }
  Rule&& between(double from, double to) && { low = from; high = to; return std::move(*this); }
  Rule&& words(std::vector<std::string> list) && { allowed = std::move(list); return std::move(*this); }
  Rule&& example(std::string text) && { example_text = std::move(text); return std::move(*this); }
  Rule&& in_starter() && { is_in_starter = true; return std::move(*this); }
};

inline Rule required() { return Rule{}.required(); }
inline Rule not_empty() { return Rule{}.not_empty(); }
inline Rule dated() {
  Rule rule;
  rule.is_date = true;
  return rule;
}
inline Rule at_least(double bound) { return Rule{}.at_least(bound); }
inline Rule above(double bound) { return Rule{}.above(bound); }
inline Rule between(double from, double to) { return Rule{}.between(from, to); }
inline Rule words(std::vector<std::string> list) { return Rule{}.words(std::move(list)); }
inline Rule example(std::string text) { return Rule{}.example(std::move(text)); }
inline Rule only_version(int number) {
  Rule rule;
  rule.version = number;
  return rule;
}

// Member visit(v), or free visit_keys(v, object) beside the struct.
template <class V, class T>
void visit_struct(V& visitor, T& object) {
  if constexpr (requires { object.visit(visitor); }) {
    object.visit(visitor);
  } else {
    visit_keys(visitor, object);
  }
}

}  // namespace stepcast::scenario
