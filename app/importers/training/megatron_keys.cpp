// Megatron's arguments, from a shell script, from the list that a log prints, or from a YAML file of them.
#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <set>

#include <fmt/format.h>

#include "app/importers/training/source_keys.hpp"
#include "sim/base/text.hpp"

namespace stepcast::app {
namespace {

std::string dashed(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

bool is_name(std::string_view text) {
  return !text.empty() && std::isdigit(static_cast<unsigned char>(text[0])) == 0 &&
         std::all_of(text.begin(), text.end(), [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; });
}

struct Token {
  std::string text;
  SourcePosition at;
};

// Words outside comments; quotes, brackets of arrays and line continuations are dropped.
std::vector<Token> tokens(const std::string& text, const std::string& file) {
  std::vector<Token> found;
  int line = 1;
  int column = 0;
  Token word;
  const auto end_word = [&] {
    if (!word.text.empty()) found.push_back(std::move(word));
    word = {};
  };
  int braces = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    ++column;
    if (c == '\n') {
      end_word();
      ++line;
      column = 0;
      braces = 0;
    } else if (c == '#' && word.text.empty()) {
      while (i + 1 < text.size() && text[i + 1] != '\n') ++i;
    } else if (braces == 0 && (c == ' ' || c == '\t' || c == '\r' || c == ';' || c == '(' || (c == ')' && word.text.rfind("$((", 0) != 0))) {
      if (c == '(' && !word.text.empty() && (word.text.back() == '$' || word.text.find("$(") != std::string::npos)) {
        word.text += c;  // $( and $((
        continue;
      }
      end_word();
    } else if (c == '"' || c == '\'' || (c == '\\' && (i + 1 == text.size() || text[i + 1] == '\n' || text[i + 1] == '\r'))) {
      continue;
    } else {
      if (c == '{' && !word.text.empty() && word.text.back() == '$') ++braces;
      if (c == '}' && braces > 0) --braces;
      if (word.text.empty()) word.at = {file, line, column};
      word.text += c;
    }
  }
  end_word();
  return found;
}

class Variables {
 public:
  void set(const std::string& name, const std::string& value) {
    const auto [place, fresh] = values_.try_emplace(name, value);
    if (!fresh && place->second != value) several_.insert(name);
    place->second = value;
  }

  // Replaces $X, ${X}, ${X:-default} and products $((A*B)); what is not known stays as it is.
  std::string expand(const std::string& text, int depth = 0) {
    const std::size_t dollar = text.find('$');
    if (dollar == std::string::npos || depth > 16) return text;
    if (text.compare(dollar, 3, "$((") == 0) return product(text.substr(dollar + 3), depth).value_or(text);
    std::size_t begin = dollar + 1;
    std::size_t end = begin;
    std::string fallback;
    bool has_fallback = false;
    if (begin < text.size() && text[begin] == '{') {
      const std::size_t close = text.find('}', ++begin);
      if (close == std::string::npos) return text;
      end = std::min(close, text.find(":-", begin));
      has_fallback = end != close;
      if (has_fallback) fallback = text.substr(end + 2, close - end - 2);
      return replaced(text, dollar, close + 1, text.substr(begin, end - begin), has_fallback ? &fallback : nullptr, depth);
    }
    while (end < text.size() && (std::isalnum(static_cast<unsigned char>(text[end])) != 0 || text[end] == '_')) ++end;
    return replaced(text, dollar, end, text.substr(begin, end - begin), nullptr, depth);
  }

  // Names whose value was used though it was set more than once.
  [[nodiscard]] const std::set<std::string>& ambiguous() const { return used_ambiguous_; }
  [[nodiscard]] const std::map<std::string, std::string>& all() const { return values_; }

 private:
  std::string replaced(const std::string& text, std::size_t from, std::size_t to, const std::string& name, const std::string* fallback, int depth) {
    const auto known = values_.find(name);
    // X=${X:-1}: its own default.
    const bool own = known != values_.end() && known->second.find("${" + name) != std::string::npos && fallback != nullptr;
    if ((known == values_.end() || own) && fallback == nullptr) return text;
    if (known != values_.end() && several_.contains(name)) used_ambiguous_.insert(name);
    const std::string& value = known != values_.end() && !own ? known->second : *fallback;
    return expand(text.substr(0, from) + value + text.substr(to), depth + 1);
  }

  std::optional<std::string> product(std::string inner, int depth) {
    std::erase_if(inner, [](char c) { return c == ')' || c == ' '; });
    std::int64_t value = 1;
    for (std::string factor : split(inner, '*')) {
      if (is_name(factor)) factor = "$" + factor;
      const std::string known = expand(factor, depth + 1);
      std::int64_t number = 0;
      const auto [rest, error] = std::from_chars(known.data(), known.data() + known.size(), number);
      if (error != std::errc{} || rest != known.data() + known.size() || number <= 0 || value > 1'000'000'000 / number) return std::nullopt;
      value *= number;
    }
    return std::to_string(value);
  }

  std::map<std::string, std::string> values_;
  std::set<std::string> several_;
  std::set<std::string> used_ambiguous_;
};

// The last one counts; said when they differ.
void put(SourceFile& source, SourceKey key) {
  const auto known = std::find_if(source.keys.begin(), source.keys.end(), [&](const SourceKey& k) { return k.name == key.name; });
  if (known == source.keys.end()) {
    source.keys.push_back(std::move(key));
    return;
  }
  if (known->value != key.value) source.remarks.push_back(fmt::format("{} is given more than once: {}, then {}; the last counts", key.name, known->value, key.value));
  *known = std::move(key);
}

SourceFile from_script(const std::string& text, const std::string& file) {
  const std::vector<Token> words = tokens(text, file);
  Variables variables;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::size_t equals = words[i].text.find('=');
    if (equals == std::string::npos || words[i].text[0] == '-' || !is_name(std::string_view{words[i].text}.substr(0, equals))) continue;
    std::string value = words[i].text.substr(equals + 1);
    if (value.rfind("--", 0) != 0) variables.set(words[i].text.substr(0, equals), value);
  }
  SourceFile source{.file = file, .keys = {}, .remarks = {}};
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::string flag = words[i].text;
    const std::size_t assigned = flag.find("=--");  // ARGS="--flag ..."
    if (assigned != std::string::npos) flag = flag.substr(assigned + 1);
    if (flag.rfind("--", 0) != 0 || flag.size() < 3) continue;
    std::string value;
    if (const std::size_t equals = flag.find('='); equals != std::string::npos) {
      value = variables.expand(flag.substr(equals + 1));
      flag = flag.substr(0, equals);
    } else {
      while (i + 1 < words.size() && words[i + 1].text.rfind("--", 0) != 0 && words[i + 1].text.find('=') == std::string::npos &&
             words[i + 1].text.find_first_of("&|<>{}") != 0 && words[i + 1].at.line - words[i].at.line <= 1) {
        ++i;
        value += (value.empty() ? "" : " ") + variables.expand(words[i].text);
      }
    }
    put(source, {dashed(flag.substr(2)), value.empty() ? "true" : value, words[i].at});
  }
  for (const char* name : {"WORLD_SIZE", "NNODES", "NUM_NODES", "GPUS_PER_NODE"}) {
    const auto known = variables.all().find(name);
    if (known == variables.all().end()) continue;
    put(source, {std::string{"$"} + name, variables.expand(known->second), {file, 0, 0}});
  }
  for (const std::string& name : variables.ambiguous()) source.remarks.push_back(fmt::format("variable {} is set more than once: the last value counts", name));
  return source;
}

// "  name ........ value": at least three dots between blanks.
std::optional<SourceKey> printed_argument(std::string_view line) {
  const std::size_t dots = line.find(" ...");
  if (dots == std::string_view::npos) return std::nullopt;
  const std::string_view name = trim(line.substr(0, dots));
  const std::size_t value = line.find_first_not_of('.', dots + 1);
  if (!is_name(name) || value == std::string_view::npos || line[value] != ' ') return std::nullopt;
  return SourceKey{dashed(std::string{name}), std::string{trim(line.substr(value))}, {}};
}

std::optional<SourceFile> from_printed(const std::string& text, const std::string& file) {
  SourceFile source{.file = file, .keys = {}, .remarks = {}};
  int number = 0;
  for (const std::string& line : split(text, '\n')) {
    ++number;
    if (auto key = printed_argument(line)) {
      // Megatron prints every default: what is off or absent says nothing.
      if (key->value == "None" || key->value == "False" || key->value == "[]") continue;
      if (key->value == "True") key->value = "true";
      key->at = {file, number, 1};
      put(source, *std::move(key));
    }
  }
  constexpr std::size_t kFew = 5;  // dots in other text
  if (source.keys.size() < kFew) return std::nullopt;
  return source;
}

}  // namespace

SourceFile read_megatron_keys(const std::string& text, const std::string& file) {
  if (file.ends_with(".yaml") || file.ends_with(".yml")) {
    SourceFile yaml = read_yaml_keys(text, file);
    SourceFile source{.file = file, .keys = {}, .remarks = std::move(yaml.remarks)};
    for (SourceKey& key : yaml.keys) {
      const std::size_t dashes = key.name.find("--");
      if (dashes == std::string::npos) continue;  // environment, launcher
      key.name = dashed(key.name.substr(dashes + 2));
      if (key.value == "false") continue;         // an absent flag
      put(source, std::move(key));
    }
    return source;
  }
  if (auto printed = from_printed(text, file)) return *std::move(printed);
  SourceFile source = from_script(text, file);
  if (source.keys.empty())
    throw UserError(Diagnostic{.where = {file, 0, 0}, .path = {}, .problem = "no argument of Megatron found",
                               .expected = "a script with --flags, a log that prints its arguments, or a YAML file with them", .got = {}, .hint = {}});
  return source;
}

}  // namespace stepcast::app
