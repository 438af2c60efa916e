#include "app/importers/training/training_import.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>

#include <fmt/format.h>

#include "sim/base/text.hpp"

namespace stepcast::app {
namespace {

constexpr std::array kForms{&kDeepSpeed, &kAccelerate, &kMegatron, &kTorchtitan};

bool matches(std::string_view pattern, std::string_view name) {
  if (pattern.ends_with('*')) return name.substr(0, pattern.size() - 1) == pattern.substr(0, pattern.size() - 1);
  return pattern == name;
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

bool is_off(const std::string& value) {
  const std::string word = lower(value);
  return word == "false" || word == "none" || word == "null" || word == "no";
}

[[noreturn]] void refuse(const SourceKey& key, std::string expected) {
  std::string hint;
  if (key.value.find('|') != std::string::npos || key.value == "...") {
    hint = "this looks like documentation: write one of the alternatives";
  } else if (key.value.rfind("CONFIG_", 0) == 0 || key.value.find('$') != std::string::npos || key.value.find('<') != std::string::npos) {
    hint = "this looks like a place-holder: put the value in its place";
  }
  throw UserError(Diagnostic{.where = key.at, .path = key.name, .problem = "not a value that can be used", .expected = std::move(expected),
                             .got = key.value, .hint = std::move(hint)});
}

}  // namespace

std::span<const TrainingForm* const> training_forms() { return kForms; }

void TrainingImport::set(const SourceKey& key, const std::string& path, const std::string& value) {
  settings[path] = {value, key.name, false};
  understood(key, path + ": " + value);
}

void TrainingImport::assume(const std::string& path, const std::string& value, const std::string& why) {
  settings.try_emplace(path, Setting{value, why, true});
}

std::int64_t TrainingImport::whole(const std::string& path, std::int64_t otherwise) const {
  const auto found = settings.find(path);
  if (found == settings.end()) return otherwise;
  return whole_number({path, found->second.value, {}}, 1);
}

std::int64_t whole_number(const SourceKey& key, std::int64_t least) {
  std::string plain = key.value;
  std::erase_if(plain, [](char c) { return c == '_' || c == ','; });
  const std::optional<double> number = parse_number(plain);
  constexpr double kMost = 9e15;  // whole numbers that a double holds exactly
  if (!number || *number != std::floor(*number) || *number < static_cast<double>(least) || *number > kMost)
    refuse(key, fmt::format("a whole number, {} or more", least));
  return static_cast<std::int64_t>(*number);
}

bool flag(const SourceKey& key) {
  const std::string word = lower(key.value);
  if (word == "true" || word == "yes" || word == "1" || word == "on") return true;
  if (word == "false" || word == "no" || word == "0" || word == "off" || word == "null" || word == "none") return false;
  refuse(key, "true or false");
}

std::string one_of_words(const SourceKey& key, std::initializer_list<std::pair<const char*, const char*>> words) {
  std::vector<std::string> choices;
  for (const auto& [word, becomes] : words) {
    if (lower(word) == lower(key.value)) return becomes;
    choices.emplace_back(word);
  }
  refuse(key, one_of(choices));
}

void apply_keys(const TrainingForm& form, const SourceFile& source, TrainingImport& out) {
  for (const SourceKey& key : source.keys) {
    const auto handler = std::find_if(form.handlers.begin(), form.handlers.end(), [&](const KeyHandler& h) { return h.key == key.name; });
    if (handler != form.handlers.end()) {
      if (lower(key.value) == "auto") {
        out.ignored(key, "left to the trainer: the scenario's default stands");
      } else {
        handler->apply(key, out);
      }
      continue;
    }
    const auto rule = std::find_if(form.rules.begin(), form.rules.end(), [&](const KeyRule& r) { return matches(r.key, key.name); });
    if (rule == form.rules.end()) {
      out.not_expressed(key, "not known to this importer");
    } else if (rule->fate == Fate::kNotExpressed && is_off(key.value)) {
      out.ignored(key, "off");
    } else {
      out.fates.push_back({key, rule->fate, std::string{rule->note}});
    }
  }
  for (const std::string& remark : source.remarks) out.remarks.push_back(remark);
  form.finish(source, out);
}

}  // namespace stepcast::app
