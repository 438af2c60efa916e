// topologies/direct_networks.hpp — networks whose switches all have hosts (torus, mesh, dragonfly), and boxes
// joined card to card. Wirings as lists of cables; paths by search (graph_paths.hpp).
// Model    torus, mesh: a switch at every point of a grid, joined with its neighbours in each dimension, in a torus
//            also from the last to the first (a dimension of two has one cable, not two). Node n hangs on switch
//            n / nodes_per_switch; points are counted with the last dimension fastest.
//          dragonfly: groups of switches, all pairs of a group joined; pairs of groups joined by global links,
//            spread over the switches of each group in the order of the other groups (Kim et al., ISCA 2008, 3.1)
//          direct: every pair of nodes joined by the same number of cables, from card to card, in the order of the
//            pairs; a cable is no switch and has no latency of its own
// Ignores  non-minimal (Valiant, UGAL) routing, dimension order: minimal paths are all used evenly; deadlock
// Tests    unit/direct_networks_test
#pragma once

#include <cstdint>
#include <span>

#include "topologies/graph_network.hpp"

namespace stepcast::topology {

struct GridPlan {
  bool wraps = true;                 // torus; else mesh
  std::uint32_t nodes_per_switch = 1;
  std::uint32_t neighbour_links = 1; // parallel links of two neighbours
};
// Requires: product of shape times nodes_per_switch = nodes.
GraphNetwork make_grid(std::span<const std::uint32_t> shape, const GridPlan& plan, std::uint32_t nodes, std::uint32_t nics);

struct DragonflyPlan {
  std::uint32_t nodes_per_switch = 1;
  std::uint32_t switches_per_group = 1;
  std::uint32_t neighbour_links = 1; // of two switches of a group
  std::uint32_t global_links = 1;    // of two groups
};
// Requires: nodes a multiple of nodes_per_switch * switches_per_group.
GraphNetwork make_dragonfly(const DragonflyPlan& plan, std::uint32_t nodes, std::uint32_t nics);

// Requires: nics a multiple of nodes - 1.
GraphNetwork make_direct(std::uint32_t nodes, std::uint32_t nics);

}  // namespace stepcast::topology
