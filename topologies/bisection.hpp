// topologies/bisection.hpp — how much the first half of the hosts can send to the second at once.
// Model    maximum flow from the NICs of the first half to those of the second, over usable capacities.
//          Leaves, groups of spines and cores form a tree of bundles, so the maximum is found by passing
//          as much as possible as low as possible (analytic, O(NICs)). In a network of any shape: push-relabel
//          over the switches.
// Ignores  PCIe and NVLink inside hosts and between the hosts of an NVLink domain, and changing rails inside hosts; other splits into halves
// Tests    unit/topology_analysis_test (by hand), property (max-flow on the graph as oracle)
#pragma once

#include <optional>

#include "topologies/fabric.hpp"

namespace stepcast::topology {

struct Bisection {
  Bandwidth capacity;          // first half to second half
  Bandwidth nic_capacity;      // what the NICs of the smaller half could send
  std::uint32_t first_half = 0;  // nodes
  [[nodiscard]] double fraction() const { return capacity / nic_capacity; }  // 1: full bisection
};

// Of one network, between halves of the nodes that it joins. Nothing for a fabric without a network.
std::optional<Bisection> bisection(const Fabric& fabric, const NetworkPart& part);
// Of the cluster's own network.
std::optional<Bisection> bisection(const Fabric& fabric);

// The same by push-relabel on the device graph (Boost.Graph): slow, for small fabrics with one network, and tests.
Bandwidth bisection_by_max_flow(const Fabric& fabric);

}  // namespace stepcast::topology
