#include "topologies/catalogue.hpp"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "sim/base/diagnostic.hpp"
#include "sim/base/text.hpp"
#include "sim/scenario/read.hpp"
#include "sim/scenario/write.hpp"
#include "topologies/catalogue_keys.hpp"

namespace stepcast::topology {

namespace {

namespace fs = std::filesystem;

// A file is an entry with the version of its form in front.
template <class T>
struct EntryFile {
  std::int64_t schema = 1;
  T entry;
  template <class V>
  void visit(V& v) {
    v.key("schema", schema, "Version of the file's form.", scenario::only_version(1).required());
    visit_keys(v, entry);
  }
};

template <class T>
std::vector<std::string> names_of(const std::map<std::string, T>& entries) {
  std::vector<std::string> names;
  for (const auto& [name, entry] : entries) names.push_back(name);
  return names;
}

Diagnostic in_file(const std::string& file, std::string path, std::string problem, std::string expected = {}) {
  return {.where = {file, 0, 0}, .path = std::move(path), .problem = std::move(problem), .expected = std::move(expected), .got = {}, .hint = {}};
}

std::string file_of(const std::string& root, std::string_view kind, const std::string& name) {
  return fmt::format("{}/{}/{}.yaml", root, kind, name);
}

template <class T>
std::map<std::string, T> load_kind(const std::string& root, std::string_view kind, Diagnostics& diagnostics) {
  const fs::path folder = fs::path{root} / kind;
  std::error_code failed;
  std::vector<std::string> files;
  for (const fs::directory_entry& file : fs::directory_iterator{folder, failed})
    if (file.path().extension() == ".yaml") files.push_back(file.path().string());
  if (failed || files.empty()) throw UserError{fmt::format("no hardware catalogue in {}: {}", folder.string(), failed ? failed.message() : "no .yaml file")};
  std::sort(files.begin(), files.end());
  std::map<std::string, T> entries;
  for (const std::string& file : files) {
    EntryFile<T> read = scenario::read_yaml_file<EntryFile<T>>(file, diagnostics);
    read.entry.name = fs::path{file}.stem().string();
    entries.emplace(read.entry.name, std::move(read.entry));
  }
  std::map<std::string, std::string> owner;
  for (const std::string& name : names_of(entries)) owner.emplace(name, name);
  for (const auto& [name, entry] : entries) {
    for (const std::string& alias : entry.aliases) {
      const auto [other, fresh] = owner.emplace(alias, name);
      if (!fresh) diagnostics.add(in_file(file_of(root, kind, name), "aliases", fmt::format("'{}' already means {}", alias, other->second)));
    }
  }
  return entries;
}

void check_node(const std::string& file, const Node& node, const Catalogue& catalogue, Diagnostics& diagnostics) {
  const auto wrong = [&](const char* key, std::string problem, std::string expected) {
    diagnostics.add(in_file(file, key, std::move(problem), std::move(expected)));
  };
  const auto gpu = catalogue.gpus.find(node.gpu);
  if (gpu == catalogue.gpus.end()) wrong("gpu", fmt::format("no GPU '{}'", node.gpu), "the name of a file in gpus/");
  if (!catalogue.nics.contains(node.nic)) wrong("nic", fmt::format("no NIC '{}'", node.nic), "the name of a file in nics/");
  const bool scale_up = node.interconnect != Interconnect::kPcie;
  if (scale_up && (!node.scale_up_efficiency || !node.scale_up_latency)) wrong("interconnect", "no scale_up_efficiency or scale_up_latency", "both, for GPUs joined by links of their own");
  if (scale_up && gpu != catalogue.gpus.end() && !gpu->second.scale_up) wrong("interconnect", fmt::format("{} has no scale_up rate", node.gpu), "pcie");
  if (!node.mesh.empty() && node.interconnect != Interconnect::kNvlinkMesh) wrong("mesh", "pairs without a mesh", "interconnect: nvlink-mesh");
  for (const MeshLink& pair : node.mesh)
    if (pair.a == pair.b || pair.a >= node.gpus || pair.b >= node.gpus) wrong("mesh", fmt::format("no pair {}, {}", pair.a, pair.b), fmt::format("two of the GPUs 0 to {}", node.gpus - 1));
  if (node.nvlink_domain && node.interconnect != Interconnect::kNvswitch) wrong("nvlink_domain", "nodes that no NVSwitch joins", "interconnect: nvswitch");
  if (node.sockets > node.gpus) wrong("sockets", "more sockets than GPUs", "at least one GPU a socket");
  // Pairs that NVLink does not reach meet over PCIe and the sockets.
  const bool all_reached = node.interconnect == Interconnect::kNvswitch || (scale_up && node.mesh.empty());
  if (node.sockets > 1 && !node.socket_link && !all_reached) wrong("socket_link", "GPUs of different sockets do not reach each other", "a rate");
}

template <class T>
const T& find(const std::map<std::string, T>& entries, const std::string& name, const std::string& path, std::string_view what) {
  if (const auto found = entries.find(name); found != entries.end()) return found->second;
  for (const auto& [key, entry] : entries)
    if (std::find(entry.aliases.begin(), entry.aliases.end(), name) != entry.aliases.end()) return entry;
  std::vector<std::string> words = names_of(entries);
  // Sixty names help nobody who mistyped one: the nearest does.
  constexpr std::size_t kMostListed = 12;
  const std::string expected = words.size() <= kMostListed ? one_of(words) : fmt::format("a {} of the catalogue (stepcast list)", what);
  for (const auto& [key, entry] : entries) words.insert(words.end(), entry.aliases.begin(), entry.aliases.end());
  const std::optional<std::string> near = nearest_word(name, words);
  throw UserError{Diagnostic{.where = {}, .path = path, .problem = fmt::format("unknown {}", what), .expected = expected, .got = name,
                             .hint = near ? fmt::format("did you mean '{}'?", *near) : ""}};
}

// A visitor that keeps the figures.
struct FigureLister {
  std::vector<FigureText> rows{};

  template <class T>
  void key(const char* name, T& member, const char*, const scenario::Rule& = {}) {
    if constexpr (scenario::IsOptional<T>) {
      if (member) key(name, *member, "");
    } else if constexpr (scenario::IsFigure<T>) {
      rows.push_back({name, text(member.value), member.basis, member.source});
    }
  }

  template <class T>
  static std::string text(const T& value) {
    if constexpr (scenario::IsQuantity<T>) {
      return scenario::print_quantity(scenario::to_base(value), scenario::DimensionOf<T>::value);
    } else {
      return fmt::format("{}", value);
    }
  }
};

template <class T>
std::vector<FigureText> list_figures(T entry) {
  FigureLister lister;
  visit_keys(lister, entry);
  return lister.rows;
}

}  // namespace

Catalogue load_catalogue(const std::string& root) {
  Diagnostics diagnostics;
  Catalogue catalogue;
  catalogue.gpus = load_kind<Gpu>(root, "gpus", diagnostics);
  catalogue.nics = load_kind<Nic>(root, "nics", diagnostics);
  catalogue.nodes = load_kind<Node>(root, "nodes", diagnostics);
  diagnostics.throw_if_any();  // what follows assumes complete entries
  for (const auto& [name, node] : catalogue.nodes) check_node(file_of(root, "nodes", name), node, catalogue, diagnostics);
  diagnostics.throw_if_any();
  return catalogue;
}

const Gpu& find_gpu(const Catalogue& catalogue, const std::string& name, const std::string& path) { return find(catalogue.gpus, name, path, "GPU"); }
const Nic& find_nic(const Catalogue& catalogue, const std::string& name, const std::string& path) { return find(catalogue.nics, name, path, "NIC"); }
const Node& find_node(const Catalogue& catalogue, const std::string& name, const std::string& path) { return find(catalogue.nodes, name, path, "node"); }

Node read_node(const Catalogue& catalogue, const std::string& file) {
  Diagnostics diagnostics;
  Node node = scenario::read_yaml_file<EntryFile<Node>>(file, diagnostics).entry;
  diagnostics.throw_if_any();
  node.name = fs::path{file}.stem().string();
  check_node(file, node, catalogue, diagnostics);
  diagnostics.throw_if_any();
  return node;
}

std::string node_text(const Node& node) { return scenario::print_effective(EntryFile<Node>{.entry = node}); }

ClusterHardware resolve_cluster(const Catalogue& catalogue, const scenario::Cluster& cluster) {
  const Node node = scenario::is_node_file(cluster.node) ? read_node(catalogue, cluster.node) : find_node(catalogue, cluster.node, "cluster.node");
  const auto nic_of = [&](const scenario::Fabric& fabric, const std::string& path) {
    return fabric.nic ? find_nic(catalogue, *fabric.nic, path + ".nic") : find_nic(catalogue, node.nic);
  };
  std::vector<NetworkCards> beside;
  for (std::size_t i = 0; i < cluster.networks.size(); ++i)
    beside.push_back({.nic = nic_of(cluster.networks[i].fabric, fmt::format("cluster.networks[{}].fabric", i))});
  return {.gpu = cluster.gpu ? find_gpu(catalogue, *cluster.gpu, "cluster.gpu") : find_gpu(catalogue, node.gpu),
          .node = node,
          .nic = nic_of(cluster.fabric.value_or(scenario::Fabric{}), "cluster.fabric"),
          .gpus_per_node = cluster.gpus_per_node.value_or(node.gpus),
          .nvlink_domain = cluster.nvlink_domain.value_or(node.nvlink_domain ? node.nvlink_domain->value : 1),
          .side_networks = std::move(beside)};
}

std::vector<FigureText> figures_of(const Gpu& gpu) { return list_figures(gpu); }
std::vector<FigureText> figures_of(const Nic& nic) { return list_figures(nic); }
std::vector<FigureText> figures_of(const Node& node) { return list_figures(node); }

std::string_view basis_name(Basis basis) {
  for (const auto& [word, value] : enum_words(Basis{}))
    if (value == basis) return word;
  return "unknown";
}

}  // namespace stepcast::topology
