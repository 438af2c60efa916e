#include "app/importers/training/source_keys.hpp"

#include <algorithm>

#include "sim/scenario/node.hpp"
#include "sim/scenario/yaml.hpp"

namespace stepcast::app {
namespace {

using scenario::Node;
using scenario::NodeKind;

std::string list_text(const Node& list) {
  std::string text = "[";
  for (const Node& item : list.items) {
    if (text.size() > 1) text += ", ";
    text += item.kind == NodeKind::kScalar ? item.scalar : scenario::describe_node(item);
  }
  return text + "]";
}

void flatten(const Node& node, const std::string& path, const SourcePosition& at, std::vector<SourceKey>& keys) {
  if (node.kind == NodeKind::kMapping) {
    for (const scenario::Entry& entry : node.entries)
      flatten(entry.value, path.empty() ? entry.key : path + "." + entry.key, entry.key_at, keys);
    return;
  }
  keys.push_back({path, node.kind == NodeKind::kList ? list_text(node) : node.kind == NodeKind::kScalar ? node.scalar : "null", at});
}

SourceFile flat(const std::string& text, const std::string& file, const char* form, const char* hint) {
  Diagnostics diagnostics;
  const std::optional<Node> root = scenario::parse_yaml(text, file, diagnostics);
  diagnostics.throw_if_any();
  if (!root || root->kind != NodeKind::kMapping)
    throw UserError(Diagnostic{.where = {file, 1, 1}, .path = {}, .problem = std::string{"not a "} + form, .expected = "keys with values",
                               .got = root ? scenario::describe_node(*root) : "nothing", .hint = hint});
  SourceFile source{.file = file, .keys = {}, .remarks = {}};
  flatten(*root, "", {file, 1, 1}, source.keys);
  return source;
}

// Comments and commas before a closing bracket become blanks, so that positions stay; tabs, too.
std::string plain_json(std::string text) {
  std::size_t comma = std::string::npos;  // the last one that nothing but blanks follows
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') {
      for (++i; i < text.size() && text[i] != '"'; ++i)
        if (text[i] == '\\') ++i;
      comma = std::string::npos;
    } else if (c == '/' && i + 1 < text.size() && (text[i + 1] == '/' || text[i + 1] == '*')) {
      const bool line = text[i + 1] == '/';
      const std::size_t end = line ? text.find('\n', i) : text.find("*/", i + 2);
      const std::size_t stop = end == std::string::npos ? text.size() : end + (line ? 0 : 2);
      for (; i < stop; ++i)
        if (text[i] != '\n') text[i] = ' ';
      --i;
    } else if (c == ',') {
      comma = i;
    } else if (c == '}' || c == ']') {
      if (comma != std::string::npos) text[comma] = ' ';
      comma = std::string::npos;
    } else if (c == '\t') {
      text[i] = ' ';
    } else if (c != ' ' && c != '\n' && c != '\r') {
      comma = std::string::npos;
    }
  }
  return text;
}

}  // namespace

const SourceKey* SourceFile::find(std::string_view name) const {
  const auto found = std::find_if(keys.begin(), keys.end(), [&](const SourceKey& key) { return key.name == name; });
  return found == keys.end() ? nullptr : &*found;
}

SourceFile read_json_keys(const std::string& text, const std::string& file) {
  return flat(plain_json(text), file, "JSON object", "a DeepSpeed configuration starts with '{'");
}

SourceFile read_yaml_keys(const std::string& text, const std::string& file) { return flat(text, file, "YAML mapping", ""); }

}  // namespace stepcast::app
