// topologies/network_choice.hpp — a scenario's words for a network's shape as what the builders take (generate.hpp has the
// presets). `at` is the key of the fabric, such as cluster.fabric, for errors.
#pragma once

#include <string>

#include "sim/scenario/cluster_section.hpp"
#include "topologies/graph_network.hpp"
#include "topologies/network_fabric.hpp"

namespace stepcast::topology {

// torus, mesh, dragonfly, direct: built as a graph.
bool is_direct(const std::string& preset);

// Throw UserError for an unknown preset and options that it cannot have.
NetworkPlan plan_network(const scenario::Fabric& options, const std::string& at, const Nic& nic, std::uint32_t nics);
GraphNetwork plan_direct(const scenario::Fabric& options, const std::string& at, std::uint32_t nodes, std::uint32_t nics);

}  // namespace stepcast::topology
