#include "app/scenario/cluster_file.hpp"

#include <filesystem>

#include "sim/base/diagnostic.hpp"
#include "sim/base/file.hpp"
#include "sim/scenario/include.hpp"
#include "sim/scenario/overlay.hpp"
#include "sim/scenario/read.hpp"

namespace stepcast::app {
namespace {

// A file about the cluster alone.
struct ClusterFile {
  std::int64_t schema = 1;
  std::string name = "cluster";
  scenario::Cluster cluster;
  scenario::Communication communication;
  template <class V>
  void visit(V& v) {
    v.key("schema", schema, "Version of this file format.", scenario::only_version(1));
    v.key("name", name, "What the cluster is called.", scenario::not_empty());
    v.key("cluster", cluster, "The machine.", scenario::required());
    v.key("communication", communication, "What is fixed of its collectives.");
  }
};

// `file` is what paths in it are relative to.
scenario::Loaded of_cluster(scenario::Node& root, const std::string& file, Diagnostics& problems) {
  scenario::include_network(root, file, problems);
  const ClusterFile read = scenario::read_tree<ClusterFile>(root, problems);
  problems.throw_if_any();
  scenario::Loaded loaded;
  loaded.scenario.name = read.name;
  loaded.scenario.cluster = read.cluster;
  loaded.scenario.communication = read.communication;
  if (scenario::is_node_file(read.cluster.node)) loaded.scenario.cluster.node = scenario::resolve_path(read.cluster.node, file);
  loaded.where = scenario::Positions{root};
  return loaded;
}

}  // namespace

scenario::Loaded load_cluster(const std::string& file, const std::vector<std::string>& sets) {
  Diagnostics problems;
  auto root = scenario::parse_yaml(read_file(file), file, problems);
  problems.throw_if_any();
  if (!root || root->find("model") != nullptr) return scenario::load_scenario(file, sets);
  if (root->find("gpus") != nullptr) {  // a node's description, as in the catalogue
    *root = scenario::Node{.kind = scenario::NodeKind::kMapping, .at = root->at};
    scenario::apply_set(*root, "name=" + std::filesystem::path{file}.stem().string(), problems);
    scenario::apply_set(*root, "cluster.node=" + file, problems);
  }
  for (const std::string& set : sets) scenario::apply_set(*root, set, problems);
  return of_cluster(*root, file, problems);
}

scenario::Loaded cluster_of_text(const std::string& text, const std::string& name, const std::vector<std::string>& sets) {
  Diagnostics problems;
  auto root = scenario::parse_yaml(text, name, problems);
  problems.throw_if_any();
  if (!root) throw UserError("no cluster in " + name);
  for (const std::string& set : sets) scenario::apply_set(*root, set, problems);
  return of_cluster(*root, name, problems);
}

}  // namespace stepcast::app
