// topologies/side_networks.hpp — the networks of a cluster by name: which nodes each joins and what it carries.
// Refused  no carries and no nodes, routing and failures of its own, names used twice or with '/', nodes that are not there, fewer than two, the same traffic of the same nodes given
//          to two networks
// Tests    unit/side_networks_test
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/scenario/cluster_section.hpp"
#include "topologies/fabric.hpp"

namespace stepcast::topology {

// The cluster's own network, which joins all nodes, and those beside it. Throws UserError at cluster.networks[i].
std::vector<NetworkPart> name_networks(std::span<const scenario::SideNetwork> networks, std::uint32_t nodes);

// "0-3,6": in order, each once. Throws UserError at `path`.
std::vector<std::uint32_t> read_node_list(const std::string& path, const std::string& text, std::uint32_t nodes);

// For traffic of an axis (none: of no axis in particular), the networks that may take it, the preferred one first: those that
// carry it, then those of some nodes, then the cluster's own. Where the two ends are both on the first of these, it is taken.
std::vector<std::uint32_t> preferred_networks(const Fabric& fabric, std::optional<scenario::TrafficAxis> axis);

}  // namespace stepcast::topology
