// TOML by toml++, the only place that includes it.
#include <sstream>

#include <fmt/format.h>
#include <toml++/toml.h>

#include "app/importers/training/source_keys.hpp"

namespace stepcast::app {
namespace {

SourcePosition position(const toml::source_region& source, const std::string& file) {
  return {file, static_cast<int>(source.begin.line), static_cast<int>(source.begin.column)};
}

std::string text_of(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return std::to_string(number->get());
  if (const auto* number = node.as_floating_point()) return fmt::format("{}", number->get());
  if (const auto* flag = node.as_boolean()) return flag->get() ? "true" : "false";
  std::ostringstream out;
  node.visit([&out](const auto& value) { out << value; });
  return out.str();
}

void flatten(const toml::table& table, const std::string& path, SourceFile& source) {
  for (const auto& [key, node] : table) {
    const std::string name = (path.empty() ? "" : path + ".") + std::string{key.str()};
    if (const auto* nested = node.as_table()) {
      flatten(*nested, name, source);
    } else {
      source.keys.push_back({name, text_of(node), position(node.source(), source.file)});
    }
  }
}

}  // namespace

SourceFile read_toml_keys(const std::string& text, const std::string& file) {
  SourceFile source{.file = file, .keys = {}, .remarks = {}};
  try {
    flatten(toml::parse(text, file), "", source);
  } catch (const toml::parse_error& error) {
    throw UserError(Diagnostic{.where = position(error.source(), file), .path = {}, .problem = "not TOML: " + std::string{error.description()},
                               .expected = "a torchtitan configuration", .got = {}, .hint = {}});
  }
  return source;
}

}  // namespace stepcast::app
