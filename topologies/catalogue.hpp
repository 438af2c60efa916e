// topologies/catalogue.hpp — loads the hardware catalogue (YAML, topologies/data) and looks things up.
//   ROOT/gpus/NAME.yaml, ROOT/nics/NAME.yaml, ROOT/nodes/NAME.yaml: the file's stem is the entry's name.
// A name is the entry's own or one of its aliases, exactly as written; anything else is refused with
// the nearest one. Nothing ever stands in for hardware that is not there.
// Tests    unit/topology_catalogue_test
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/scenario/scenario.hpp"
#include "topologies/generate.hpp"
#include "topologies/hardware.hpp"

namespace stepcast::topology {

// Throws UserError with every mistake in every file, and for names or aliases used twice, nodes that
// name unknown GPUs or NICs, and wiring that does not fit the node.
Catalogue load_catalogue(const std::string& root);

// `path` is the key that the name came from, for the error.
const Gpu& find_gpu(const Catalogue& catalogue, const std::string& name, const std::string& path = "gpu");
const Nic& find_nic(const Catalogue& catalogue, const std::string& name, const std::string& path = "nic");
const Node& find_node(const Catalogue& catalogue, const std::string& name, const std::string& path = "node");

// A node described in a file of its own, as the catalogue's are; its name is the file's stem. node_text writes one.
Node read_node(const Catalogue& catalogue, const std::string& file);
std::string node_text(const Node& node);

// The cluster's node with its GPU and NIC, and the scenario's overrides of these.
ClusterHardware resolve_cluster(const Catalogue& catalogue, const scenario::Cluster& cluster);

// The figures of an entry, in the file's order, as text: what `list` prints.
struct FigureText {
  std::string key;      // "memory_bandwidth"
  std::string value;    // "3.35 TB/s"
  Basis basis = Basis::kAssumed;
  std::string source;
};
std::vector<FigureText> figures_of(const Gpu& gpu);
std::vector<FigureText> figures_of(const Nic& nic);
std::vector<FigureText> figures_of(const Node& node);

std::string_view basis_name(Basis basis);  // "measured", "datasheet", "published", "assumed"

}  // namespace stepcast::topology
