#include "models/workload/json_reader.hpp"

#include <cctype>
#include <cmath>
#include <iterator>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "sim/base/text.hpp"

namespace stepcast::workload {

using nlohmann::json;

namespace {

constexpr std::size_t kDeepest = 64;
constexpr std::size_t kLongestShown = 60;

// Stand-ins of the same length for Python's bare words, so that positions stay true.
struct BareWord {
  std::string_view word;
  std::string_view stand_in;
};
constexpr BareWord kBareWords[] = {
    {"-Infinity", "\"-Infin\""}, {"Infinity", "\"Infin\""}, {"NaN", "\"?\""}};

SourcePosition position_at(std::string_view text, std::size_t offset, const std::string& file) {
  SourcePosition position{file, 1, 1};
  for (std::size_t i = 0; i < offset && i < text.size(); ++i) {
    if (text[i] == '\n') {
      ++position.line;
      position.column = 1;
    } else {
      ++position.column;
    }
  }
  return position;
}

std::string with_stand_ins(std::string_view text) {
  std::string out{text};
  bool in_string = false;
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (in_string) {
      if (out[i] == '\\')
        ++i;
      else if (out[i] == '"')
        in_string = false;
      continue;
    }
    if (out[i] == '"') in_string = true;
    for (const BareWord& bare : kBareWords) {
      if (out.compare(i, bare.word.size(), bare.word) != 0) continue;
      std::string replacement{bare.stand_in};
      replacement.resize(bare.word.size(), ' ');
      out.replace(i, bare.word.size(), replacement);
      i += bare.word.size() - 1;
      break;
    }
  }
  return out;
}

// Counts the characters the parser has taken.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, std::size_t* taken) : at_{at}, taken_{taken} {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    ++at_;
    ++*taken_;
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator before = *this;
    ++*this;
    return before;
  }
  friend bool operator==(const CountingIterator& a, const CountingIterator& b) {
    return a.at_ == b.at_;
  }
  friend bool operator!=(const CountingIterator& a, const CountingIterator& b) {
    return a.at_ != b.at_;
  }

 private:
  const char* at_;
  std::size_t* taken_;
};

// Walks the document once, noting where each key stands and refusing doubles.
class KeyWalk final : public nlohmann::json_sax<json> {
 public:
  KeyWalk(std::string_view text, const std::string& file, const std::size_t& taken,
          std::map<std::string, SourcePosition>& positions, Diagnostics& diagnostics)
      : text_{text}, file_{file}, taken_{taken}, positions_{positions}, diagnostics_{diagnostics} {}

  bool null() override { return next(); }
  bool boolean(bool) override { return next(); }
  bool number_integer(number_integer_t) override { return next(); }
  bool number_unsigned(number_unsigned_t) override { return next(); }
  bool number_float(number_float_t, const string_t&) override { return next(); }
  bool string(string_t&) override { return next(); }
  bool binary(binary_t&) override { return next(); }

  bool start_object(std::size_t) override { return open(false); }
  bool start_array(std::size_t) override { return open(true); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    Level& level = levels_.back();
    level.key = name;
    const std::string path = current_path();
    const SourcePosition position = advance_to(start_of_key());
    if (!level.seen.insert(name).second) {
      const SourcePosition first = positions_[path];
      diagnostics_.add({position, path, "key given twice", "each key once", "",
                        fmt::format("first given in line {}", first.line)});
    } else {
      positions_[path] = position;
    }
    return true;
  }

  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;  // the document's own parse reports it
  }

 private:
  struct Level {
    bool array = false;
    std::size_t index = 0;
    std::string key;
    std::set<std::string> seen;
  };

  bool open(bool array) {
    if (levels_.size() >= kDeepest) {
      diagnostics_.add({position_at(text_, taken_, file_), "", "nested too deeply",
                        fmt::format("at most {} levels", kDeepest), "", ""});
      return false;
    }
    levels_.push_back({array, 0, {}, {}});
    return true;
  }
  bool close() {
    levels_.pop_back();
    return next();
  }
  bool next() {
    if (!levels_.empty() && levels_.back().array) ++levels_.back().index;
    return true;
  }

  [[nodiscard]] std::string current_path() const {
    std::string path;
    for (const Level& level : levels_) {
      if (level.array)
        path += fmt::format("[{}]", level.index);
      else
        path += (path.empty() ? "" : ".") + level.key;
    }
    return path;
  }

  // Keys come in the order of the text, so lines are counted once.
  SourcePosition advance_to(std::size_t offset) {
    for (; counted_ < offset; ++counted_) {
      if (text_[counted_] == '\n') {
        ++here_.line;
        here_.column = 1;
      } else {
        ++here_.column;
      }
    }
    return here_;
  }

  // The parser has just taken the key's closing quote.
  [[nodiscard]] std::size_t start_of_key() const {
    std::size_t at = taken_ >= 2 ? taken_ - 2 : 0;
    while (at > 0 && (text_[at] != '"' || text_[at - 1] == '\\')) --at;
    return at;
  }

  std::string_view text_;
  const std::string& file_;
  const std::size_t& taken_;
  std::map<std::string, SourcePosition>& positions_;
  Diagnostics& diagnostics_;
  std::vector<Level> levels_;
  std::size_t counted_ = 0;
  SourcePosition here_{file_, 1, 1};
};

const char* kind_of(const json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "a list";
  if (value.is_boolean()) return "a boolean";
  if (value.is_string()) return "text";
  return "a number";
}

}  // namespace

JsonDocument::JsonDocument(std::string_view original, std::string file) : file_{std::move(file)} {
  const std::string text = with_stand_ins(original);
  Diagnostics diagnostics;
  std::size_t taken = 0;
  KeyWalk walk{text, file_, taken, positions_, diagnostics};
  const bool complete = json::sax_parse(CountingIterator{text.data(), &taken},
                                        CountingIterator{text.data() + text.size(), &taken}, &walk);
  diagnostics.throw_if_any();
  if (!complete) {
    const bool blank = trim(text).empty();
    const bool truncated = taken >= text.size();
    throw UserError{Diagnostic{position_at(text, taken > 0 ? taken - 1 : 0, file_), "",
                               blank ? "the file is empty" : "not valid JSON",
                               truncated && !blank ? "more text: the file ends in the middle"
                                                   : "a config.json as saved by transformers",
                               "", ""}};
  }
  root_ = json::parse(text);
  if (!root_.is_object())
    throw UserError{Diagnostic{
        {file_, 1, 1}, "", "not a model configuration", "an object { ... }", kind_of(root_), ""}};
}

SourcePosition JsonDocument::position_of(const std::string& path) const {
  for (std::string at = path; !at.empty();) {
    if (const auto found = positions_.find(at); found != positions_.end()) return found->second;
    const auto dot = at.rfind('.');
    at.resize(dot == std::string::npos ? 0 : dot);
  }
  return {file_, 0, 0};
}

std::string shown(const json& value) {
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    for (const BareWord& bare : kBareWords)
      if (text == bare.stand_in.substr(1, bare.stand_in.size() - 2)) return std::string{bare.word};
  }
  if (value.is_object() || (value.is_array() && value.size() > 4)) return kind_of(value);
  std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  if (text.size() > kLongestShown) text = text.substr(0, kLongestShown) + "...";
  return text;
}

const json* JsonObject::value(const char* name) const {
  const auto found = object_->find(name);
  return found == object_->end() || found->is_null() ? nullptr : &*found;
}

std::string JsonObject::path_of(const std::string& name) const {
  return path_.empty() ? name : path_ + "." + name;
}

void JsonObject::report(const std::string& name, const std::string& problem,
                        const std::string& expected, const std::string& got,
                        const std::string& hint) {
  const std::string path = path_of(name);
  diagnostics_->add({document_->position_of(path), path, problem, expected, got, hint});
}

std::optional<std::int64_t> JsonObject::integer(Names names, IntegerRange range) {
  for (const char* name : names) {
    const json* found = value(name);
    if (found == nullptr) continue;
    const std::string expected =
        fmt::format("a whole number from {} to {}", range.least, range.most);
    if (!found->is_number()) {
      report(name, "not a number", expected, shown(*found));
      return range.least;
    }
    // 4096.0 is a whole number; compared as a double so that 1e30 is caught before it is converted.
    const double number = found->get<double>();
    if (!std::isfinite(number) || number != std::floor(number)) {
      report(name, "not a whole number", expected, shown(*found));
      return range.least;
    }
    if (number < static_cast<double>(range.least) || number > static_cast<double>(range.most)) {
      report(name, "out of range", expected, shown(*found));
      return range.least;
    }
    return static_cast<std::int64_t>(number);
  }
  return std::nullopt;
}

std::int64_t JsonObject::required_integer(Names names, IntegerRange range) {
  if (const auto found = integer(names, range)) return *found;
  std::vector<std::string> others;
  for (const char* name : names) others.emplace_back(name);
  report(*names.begin(), "missing",
         others.size() == 1 ? fmt::format("a whole number from {} to {}", range.least, range.most)
                            : one_of(others));
  return range.least;
}

std::optional<bool> JsonObject::flag(const char* name) {
  const json* found = value(name);
  if (found == nullptr) return std::nullopt;
  if (!found->is_boolean()) {
    report(name, "not a boolean", "true or false", shown(*found));
    return std::nullopt;
  }
  return found->get<bool>();
}

std::optional<std::string> JsonObject::text(Names names) {
  for (const char* name : names) {
    const json* found = value(name);
    if (found == nullptr) continue;
    if (!found->is_string()) {
      report(name, "not text", "a quoted word", shown(*found));
      return std::nullopt;
    }
    return found->get<std::string>();
  }
  return std::nullopt;
}

std::optional<JsonObject> JsonObject::object(const char* name) {
  const json* found = value(name);
  if (found == nullptr) return std::nullopt;
  if (!found->is_object()) {
    report(name, "not an object", "{ ... }", shown(*found));
    return std::nullopt;
  }
  return JsonObject{*document_, *found, path_of(name), *diagnostics_};
}

}  // namespace stepcast::workload
