// topologies/path_dag.hpp — all surviving shortest paths between two ports of the network as a graph, for
// what looks at more than one of them: even spreading over single links, and central planning.
// Model    places (next_hops.hpp) by distance from the sender, joined by their next-hop links.
//          Even spreading: every place sends on evenly over its links.                             (1)
//          Widest path: the path whose largest cost is smallest, then whose sum of costs is, then whose
//          links come first.                                                                        (2)
// Cost     O(links on shortest paths): 2 k in two tiers with k spines, 2 k + 2 k v in three
// Tests    unit/next_hops_test
#pragma once

#include <functional>
#include <vector>

#include "topologies/next_hops.hpp"

namespace stepcast::topology {

struct PathDag {
  struct Edge {
    std::uint32_t from = 0;  // index of a place
    std::uint32_t to = 0;
    LinkId link;
  };
  std::vector<NextHops::Place> places;  // nearer the sender first; the sender's NIC is place 0
  std::vector<Edge> edges;              // by `from`
  std::uint32_t end = 0;                // the place at the receiving NIC
  [[nodiscard]] bool reaches() const { return end != 0; }
};

PathDag build_dag(NextHops& hops, std::uint32_t from_port, std::uint32_t to_port);

struct LinkShare {
  LinkId link;
  double share = 1.0;
};
// (1), in the order of travel. Requires: dag.reaches().
std::vector<LinkShare> even_shares(const PathDag& dag);
// (2). Requires: dag.reaches(); costs not NaN.
std::vector<LinkId> widest_path(const PathDag& dag, const std::function<double(LinkId)>& cost);

}  // namespace stepcast::topology
