// topologies/explicit_network.hpp — a network written out in a scenario (sim/scenario/network_section.hpp)
// as switches and links: names to indices, ranges to pairs, every mistake refused.
// Refused  unknown and repeated names, links named twice, a NIC without a switch or with two, a link between
//          two hosts, hosts that do not reach each other, another number of hosts than nodes
// Tests    unit/explicit_network_test
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/scenario/network_section.hpp"
#include "topologies/graph_network.hpp"

namespace stepcast::topology {

struct ExplicitNetwork {
  std::vector<std::string> hosts;  // by node of the network
  GraphNetwork graph;
};

// `at`: the key of its fabric, such as cluster.fabric; `names`: of its nodes, where it names none itself.
// Throws UserError at AT.network... for what cannot be.
ExplicitNetwork read_explicit(const scenario::Network& network, const std::string& at, std::vector<std::string> names, std::uint32_t nics_per_node);

}  // namespace stepcast::topology
