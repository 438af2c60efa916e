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

// The network that a file holds; nothing, and a diagnostic, when it holds none.
std::optional<Node> network_of(Node root, const std::string& file, const std::string& at, Diagnostics& diagnostics) {
  if (root.find("cluster") != nullptr) {
    Node* here = &root;
    for (const char* key : {"cluster", "fabric", "network"}) {
      Entry* entry = here->find(key);
      if (entry == nullptr) {
        diagnostics.add({.where = {file, 0, 0}, .path = at, .problem = "no network in this file",
                         .expected = "hosts, switches and links, or a cluster.fabric.network"});
        return std::nullopt;
      }
      here = &entry->value;
    }
    return std::move(*here);
  }
  if (Entry* schema = root.find("schema")) {
    std::int64_t version = 1;
    read_value(schema->value, Place{schema->key_at, "schema"}, only_version(1), diagnostics, version);
    std::erase_if(root.entries, [](const Entry& e) { return e.key == "schema"; });
  }
  return root;
}

// Puts the file's network in place of `file:` in one fabric.
void include_in(Node& fabric, const std::string& at, const std::string& path, Diagnostics& diagnostics) {
  Entry* file = fabric.find("file");
  if (file == nullptr) return;
  const std::string key = at + ".file";
  const Place place{file->key_at, key};
  std::string name;
  if (!read_value(file->value, place, not_empty(), diagnostics, name)) return;
  if (fabric.find("network") != nullptr) {
    diagnostics.add({.where = place.where, .path = key, .problem = "the network is given twice", .expected = "either file or network"});
    return;
  }
  const std::string found = resolve_path(name, path);
  std::string text;
  try {
    text = read_file(found);
  } catch (const UserError& error) {
    for (Diagnostic d : error.diagnostics()) {
      d.where = place.where;
      d.path = key;
      diagnostics.add(std::move(d));
    }
    return;
  }
  std::optional<Node> tree = parse_yaml(text, found, diagnostics);
  if (!tree) return;
  if (tree->kind != NodeKind::kMapping) {
    diagnostics.add({.where = {found, 0, 0}, .path = key, .problem = "no network in this file", .expected = "hosts, switches and links"});
    return;
  }
  std::optional<Node> network = network_of(std::move(*tree), found, key, diagnostics);
  if (!network) return;
  file->key = "network";
  file->value = std::move(*network);
}

}  // namespace

void include_network(Node& root, const std::string& path, Diagnostics& diagnostics) {
  Entry* cluster = root.find("cluster");
  if (cluster == nullptr) return;
  if (Entry* fabric = cluster->value.find("fabric")) include_in(fabric->value, "cluster.fabric", path, diagnostics);
  Entry* networks = cluster->value.find("networks");
  if (networks == nullptr) return;
  for (std::size_t i = 0; i < networks->value.items.size(); ++i) {
    if (Entry* fabric = networks->value.items[i].find("fabric"))
      include_in(fabric->value, child_path(child_path("cluster.networks", i), "fabric"), path, diagnostics);
  }
}

}  // namespace stepcast::scenario
