// topologies/network_fabric.hpp — the switches between hosts: leaves, spines, cores (generate.hpp has
// the model). Every preset is one choice of these four answers.
#pragma once

#include <cstdint>

#include "topologies/fabric.hpp"
#include "topologies/hardware.hpp"

namespace stepcast::topology {

struct NetworkPlan {
  bool by_rail = false;              // NIC i of a pod's nodes on leaf i; else a node's NICs share a leaf
  bool join_rails = true;            // spines join leaves of all rails
  bool cores = false;                // a third tier over the pods
  std::uint32_t planes = 1;          // NIC i on plane i mod planes; spines join leaves of one plane (not with cores)
  std::uint32_t leaf_ports = 32;     // down-ports
  std::uint32_t nodes_per_pod = 32;  // by_rail: at most leaf_ports; cores: nodes under one set of spines
  double oversubscription = 1.0;
  double core_oversubscription = 1.0;
};

// Adds one of fabric.networks to a fabric that has its hosts and ports for all NICs.
void add_network(Fabric& fabric, NetworkPart& part, const Nic& nic, const NetworkPlan& plan);

}  // namespace stepcast::topology
