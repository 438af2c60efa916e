#include "sim/scenario/read.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>

#include <fmt/format.h>

#include "sim/base/text.hpp"

namespace stepcast::scenario {
namespace {

// Whole numbers up to here are exact in a double; larger ones are nobody's layer count.
constexpr double kLargestWhole = 9007199254740992.0;  // 2^53

std::string bound_text(double bound, std::optional<Dimension> dimension) {
  if (!dimension) return fmt::format("{}", bound);
  return print_quantity(*dimension == Dimension::kDuration ? bound * 1e12 : bound, *dimension);
}

// "a whole number of at least 1", "a time between 0 and 1 s"
std::string with_bounds(std::string what, const Rule& rule, std::optional<Dimension> dimension = std::nullopt) {
  const bool has_low = std::isfinite(rule.low);
  const bool has_high = std::isfinite(rule.high);
  if (has_low && has_high && !rule.low_excluded) {
    return fmt::format("{} from {} to {}", what, bound_text(rule.low, dimension), bound_text(rule.high, dimension));
  }
  if (has_low) what += fmt::format(" {} {}", rule.low_excluded ? "above" : "of at least", bound_text(rule.low, dimension));
  if (has_high) what += fmt::format("{} at most {}", has_low ? " and" : " of", bound_text(rule.high, dimension));
  return what;
}

bool within(double value, const Rule& rule) {
  return (rule.low_excluded ? value > rule.low : value >= rule.low) && value <= rule.high;
}

}  // namespace

bool is_day(const std::string& text) {
  if (text.size() != 10 || text[4] != '-' || text[7] != '-') return false;
  const auto number = [&](std::size_t from, std::size_t count) {
    int value = -1;
    const char* const end = text.data() + from + count;
    return std::from_chars(text.data() + from, end, value).ptr == end ? value : -1;
  };
  const std::chrono::year_month_day day{std::chrono::year{number(0, 4)}, std::chrono::month{static_cast<unsigned>(number(5, 2))},
                                        std::chrono::day{static_cast<unsigned>(number(8, 2))}};
  return number(0, 4) > 0 && day.ok();
}

namespace {

void refuse(const Place& place, std::string problem, std::string expected, std::string got, std::string hint,
            Diagnostics& diagnostics) {
  diagnostics.add({.where = place.where,
                   .path = place.path,
                   .problem = std::move(problem),
                   .expected = std::move(expected),
                   .got = std::move(got),
                   .hint = std::move(hint)});
}

// Common to all numbers without a unit. Quoted text is no number.
std::optional<double> read_bare_number(const Node& node, const Place& place, const std::string& expected,
                                       Diagnostics& diagnostics) {
  if (node.kind != NodeKind::kScalar) {
    wrong_kind(node, place, expected, diagnostics);
    return std::nullopt;
  }
  const auto value = parse_number(node.scalar);
  if (value && !node.quoted) return value;
  std::string hint;
  const std::string& text = node.scalar;
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (value) {
    hint = fmt::format("remove the quotes: {}", text);
  } else if (text.size() > 1 && text[0] == '0' && std::all_of(text.begin(), text.end(), is_digit)) {
    hint = fmt::format("a number does not start with 0: {}", text.substr(std::min(text.find_first_not_of('0'), text.size() - 1)));
  } else if (text.find_first_of(",_") != std::string::npos) {
    std::string digits;
    for (const char c : text) {
      if (c != ',' && c != '_') digits += c;
    }
    if (parse_number(digits)) hint = fmt::format("write it without separators: {}", digits);
  } else if (!text.empty() && is_digit(text[0])) {
    double number = 0.0;
    const auto end = std::from_chars(text.data(), text.data() + text.size(), number).ptr;
    if (end != text.data() + text.size()) hint = "this key has no unit and takes a plain number";
  }
  refuse(place, "not a number", expected, describe_node(node), hint, diagnostics);
  return std::nullopt;
}

// Capital letters aside first: TP is tp, not cp.
std::optional<std::string> nearest_key(const std::string& word, const std::vector<std::string>& keys) {
  const auto lower = [](std::string text) {
    for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    return text;
  };
  for (const std::string& key : keys) {
    if (lower(key) == lower(word)) return key;
  }
  return nearest_word(word, keys);
}

}  // namespace

void wrong_kind(const Node& node, const Place& place, const std::string& expected, Diagnostics& diagnostics) {
  if (node.refused) return;
  refuse(place, node.kind == NodeKind::kNothing ? "no value" : "wrong kind of value", expected, describe_node(node),
         expected == kSection && node.kind == NodeKind::kScalar ? "its keys follow, indented, as 'key: value'" : "",
         diagnostics);
}

bool read_value(const Node& node, const Place& place, const Rule& rule, Diagnostics& diagnostics, std::int64_t& out) {
  const std::string expected = with_bounds("a whole number", rule);
  const auto value = read_bare_number(node, place, expected, diagnostics);
  if (!value) return false;
  if (rule.version) {
    if (*value != *rule.version) {
      refuse(place, "a version this program does not read", fmt::format("{}", *rule.version), describe_node(node), {},
             diagnostics);
      return false;
    }
    out = static_cast<std::int64_t>(*value);
    return true;
  }
  if (std::floor(*value) != *value || std::abs(*value) > kLargestWhole) {
    refuse(place, std::abs(*value) > kLargestWhole ? "out of range" : "not a whole number", expected,
           describe_node(node), {}, diagnostics);
    return false;
  }
  if (!within(*value, rule)) {
    refuse(place, "out of range", expected, describe_node(node), {}, diagnostics);
    return false;
  }
  out = static_cast<std::int64_t>(*value);
  return true;
}

bool read_value(const Node& node, const Place& place, const Rule& rule, Diagnostics& diagnostics, std::int32_t& out) {
  Rule narrow = rule;
  narrow.low = std::max(rule.low, static_cast<double>(std::numeric_limits<std::int32_t>::min()));
  std::int64_t wide = 0;
  if (!read_value(node, place, rule, diagnostics, wide)) return false;
  if (wide > std::numeric_limits<std::int32_t>::max() || wide < std::numeric_limits<std::int32_t>::min()) {
    refuse(place, "out of range", with_bounds("a whole number", narrow), describe_node(node), {}, diagnostics);
    return false;
  }
  out = static_cast<std::int32_t>(wide);
  return true;
}

bool read_value(const Node& node, const Place& place, const Rule& rule, Diagnostics& diagnostics, double& out) {
  const std::string expected = with_bounds("a number", rule);
  const auto value = read_bare_number(node, place, expected, diagnostics);
  if (!value) return false;
  if (!within(*value, rule)) {
    refuse(place, "out of range", expected, describe_node(node), {}, diagnostics);
    return false;
  }
  out = *value;
  return true;
}

bool read_value(const Node& node, const Place& place, const Rule&, Diagnostics& diagnostics, bool& out) {
  if (node.kind != NodeKind::kScalar) {
    wrong_kind(node, place, "true or false", diagnostics);
    return false;
  }
  if (!node.quoted && (node.scalar == "true" || node.scalar == "false")) {
    out = node.scalar == "true";
    return true;
  }
  std::string lower = node.scalar;
  std::transform(lower.begin(), lower.end(), lower.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  std::string hint;
  if (lower == "true" || lower == "yes" || lower == "on" || lower == "1") hint = "write true";
  if (lower == "false" || lower == "no" || lower == "off" || lower == "0") hint = "write false";
  refuse(place, "not true or false", "true or false", describe_node(node), hint, diagnostics);
  return false;
}

bool read_value(const Node& node, const Place& place, const Rule& rule, Diagnostics& diagnostics, std::string& out) {
  if (node.kind != NodeKind::kScalar) {
    wrong_kind(node, place, rule.allowed.empty() ? "text" : one_of(rule.allowed), diagnostics);
    return false;
  }
  if (!rule.allowed.empty()) {
    const auto index = read_word(node, place, diagnostics, rule.allowed);
    if (index) out = rule.allowed[*index];
    return index.has_value();
  }
  if (rule.is_filled && trim(node.scalar).empty()) {
    refuse(place, "empty text", "some text", describe_node(node), {}, diagnostics);
    return false;
  }
  if (rule.is_date && !is_day(node.scalar)) {
    refuse(place, "not a day", "year-month-day, such as 2026-11-30", describe_node(node), {}, diagnostics);
    return false;
  }
  out = node.scalar;
  return true;
}

bool read_value(const Node& node, const Place&, const Rule&, Diagnostics&, Node& out) {
  out = node;
  return true;
}

std::optional<double> read_quantity(const Node& node, const Place& place, const Rule& rule, Diagnostics& diagnostics,
                                    Dimension dimension) {
  const std::string what = describe_dimension(dimension);
  if (node.kind != NodeKind::kScalar) {
    wrong_kind(node, place, what, diagnostics);
    return std::nullopt;
  }
  const ParsedQuantity parsed = parse_quantity(node.scalar, dimension);
  if (!parsed.base) {
    refuse(place, parsed.error.problem, what, describe_node(node), parsed.error.hint, diagnostics);
    return std::nullopt;
  }
  const bool is_time = dimension == Dimension::kDuration;
  const bool whole = is_time || dimension == Dimension::kBytes;
  double base = *parsed.base;
  if (whole && base != 0.0 && std::abs(base) < 0.5) {
    refuse(place, is_time ? "smaller than a picosecond" : "smaller than a byte", what, describe_node(node), {}, diagnostics);
    return std::nullopt;
  }
  if (whole) base = std::round(base);
  if (whole && std::abs(base) >= 9.2e18) {
    refuse(place, "out of range", is_time ? "a time of less than 106 days" : "a size of less than 9.2e18 B",
           describe_node(node), {}, diagnostics);
    return std::nullopt;
  }
  if (!within(is_time ? base * 1e-12 : base, rule)) {
    const std::string noun = what.substr(0, what.find(" such as"));
    refuse(place, "out of range", with_bounds(noun, rule, dimension), describe_node(node), {}, diagnostics);
    return std::nullopt;
  }
  return base;
}

std::optional<std::size_t> read_word(const Node& node, const Place& place, Diagnostics& diagnostics,
                                     const std::vector<std::string>& candidates) {
  if (node.kind != NodeKind::kScalar) {
    wrong_kind(node, place, one_of(candidates), diagnostics);
    return std::nullopt;
  }
  const auto found = std::find(candidates.begin(), candidates.end(), node.scalar);
  if (found != candidates.end()) return static_cast<std::size_t>(found - candidates.begin());
  const auto near = nearest_word(node.scalar, candidates);
  refuse(place, "unknown word", candidates.size() == 1 ? candidates.front() : one_of(candidates), describe_node(node),
         near ? fmt::format("did you mean '{}'?", *near) : "", diagnostics);
  return std::nullopt;
}

void MappingReader::finish() {
  std::vector<std::string> absent;
  for (const std::string& key : known_) {
    if (mapping_.find(key) == nullptr) absent.push_back(key);
  }
  for (const Entry& entry : mapping_.entries) {
    if (std::find(known_.begin(), known_.end(), entry.key) != known_.end()) continue;
    const auto near = nearest_key(entry.key, absent);
    std::string hint;
    if (near) {
      std::erase_if(missing_, [&](const Missing& m) { return m.key == *near; });
      hint = fmt::format("did you mean '{}'?", *near);
    } else if (const auto given = nearest_key(entry.key, known_)) {
      const int line = mapping_.find(*given)->key_at.line;
      hint = fmt::format("did you mean '{}', which is also given{}?", *given, line > 0 ? fmt::format(" (line {})", line) : "");
    }
    diagnostics_.add({.where = entry.key_at,
                      .path = child_path(place_.path, entry.key),
                      .problem = kUnknownKey,
                      .expected = one_of(known_),
                      .hint = std::move(hint)});
  }
  for (const Missing& m : missing_) {
    diagnostics_.add({.where = place_.where,
                      .path = child_path(place_.path, m.key),
                      .problem = kMissingKey,
                      .expected = m.sentence});
  }
}

}  // namespace stepcast::scenario
