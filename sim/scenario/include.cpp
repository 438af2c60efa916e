#include "sim/scenario/include.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "sim/base/file.hpp"
#include "sim/scenario/load.hpp"
#include "sim/scenario/read.hpp"
#include "sim/scenario/yaml.hpp"

namespace stepcast::scenario {
namespace {

const std::string kPath = "cluster.fabric.file";

// The network that a file holds; nothing, and a diagnostic, when it holds none.
std::optional<Node> network_of(Node root, const std::string& file, Diagnostics& diagnostics) {
  if (root.find("cluster") != nullptr) {
    Node* at = &root;
    for (const char* key : {"cluster", "fabric", "network"}) {
      Entry* entry = at->find(key);
      if (entry == nullptr) {
        diagnostics.add({.where = {file, 0, 0}, .path = kPath, .problem = "no network in this file",
                         .expected = "hosts, switches and links, or a cluster.fabric.network"});
        return std::nullopt;
      }
      at = &entry->value;
    }
    return std::move(*at);
  }
  if (Entry* schema = root.find("schema")) {
    std::int64_t version = 1;
    read_value(schema->value, Place{schema->key_at, "schema"}, only_version(1), diagnostics, version);
    std::erase_if(root.entries, [](const Entry& e) { return e.key == "schema"; });
  }
  return root;
}

}  // namespace

void include_network(Node& root, const std::string& path, Diagnostics& diagnostics) {
  Entry* cluster = root.find("cluster");
  Entry* fabric = cluster == nullptr ? nullptr : cluster->value.find("fabric");
  Entry* file = fabric == nullptr ? nullptr : fabric->value.find("file");
  if (file == nullptr) return;
  const Place place{file->key_at, kPath};
  std::string name;
  if (!read_value(file->value, place, not_empty(), diagnostics, name)) return;
  if (fabric->value.find("network") != nullptr) {
    diagnostics.add({.where = place.where, .path = kPath, .problem = "the network is given twice", .expected = "either file or network"});
    return;
  }
  const std::string found = resolve_path(name, path);
  std::string text;
  try {
    text = read_file(found);
  } catch (const UserError& error) {
    for (Diagnostic d : error.diagnostics()) {
      d.where = place.where;
      d.path = kPath;
      diagnostics.add(std::move(d));
    }
    return;
  }
  std::optional<Node> tree = parse_yaml(text, found, diagnostics);
  if (!tree) return;
  if (tree->kind != NodeKind::kMapping) {
    diagnostics.add({.where = {found, 0, 0}, .path = kPath, .problem = "no network in this file", .expected = "hosts, switches and links"});
    return;
  }
  std::optional<Node> network = network_of(std::move(*tree), found, diagnostics);
  if (!network) return;
  file->key = "network";
  file->value = std::move(*network);
}

}  // namespace stepcast::scenario
