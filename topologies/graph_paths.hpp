// topologies/graph_paths.hpp — ideal routing through a network of any shape: shares by graph search.
// Model    a switch sends traffic on evenly over all its links that lie on a shortest path, by links, to the
//          receiver's switch
// Cost     O(switches + links on shortest paths) a path. Distances to every leaf are kept where leaves times
//          switches is at most 16 million; else each path searches its own, O(links between switches) more
// Ignores  rates: two links of different rate on shortest paths carry the same; congestion
// Tests    unit/direct_networks_test (by hand, and against next hops over single links), unit/explicit_network_test
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "topologies/fabric.hpp"

namespace stepcast::topology {

class GraphPaths {
 public:
  // Keeps a reference: `fabric` must outlive it. Requires: part is one of fabric.networks, by_search.
  GraphPaths(const Fabric& fabric, const NetworkPart& part);

  struct Reach {
    Duration latency;          // along the longest of the shortest paths
    int links = 0;
  };
  // Adds what `weight` of traffic from one leaf to another puts on each bundle. Requires: one group.
  Reach add(std::uint32_t from_leaf, std::uint32_t to_leaf, double weight, std::vector<Path::Share>& shares) const;

 private:
  struct Hop {
    std::uint32_t other = 0;   // switch
    std::uint32_t bundle = 0;
  };
  [[nodiscard]] std::span<const Hop> hops_of(std::uint32_t s) const { return {hops_.data() + begin_[s], begin_[s + 1] - begin_[s]}; }
  [[nodiscard]] std::uint32_t switch_of(std::uint32_t leaf) const;
  void search(std::uint32_t to, std::span<std::uint16_t> distance) const;

  const Fabric& fabric_;
  std::uint32_t first_switch_;
  std::uint32_t switches_;
  std::uint32_t first_leaf_;
  std::vector<std::uint32_t> begin_;
  std::vector<Hop> hops_;                    // of a switch, by bundle; every link has its twin the other way
  std::vector<std::uint16_t> distance_;      // [leaf][switch]; empty: too many
};

}  // namespace stepcast::topology
