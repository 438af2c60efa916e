// tests/support/polarization.hpp — how many of its up-links a second-tier switch uses for what one leaf sends it.
// For tests and bench_paths.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/run/link_paths.hpp"
#include "tests/support/topology_hardware.hpp"

namespace stepcast::run::testing {

// Three tiers, two pods: leaves of k1 up-links, k2 leaves a pod and so spines of k2 up-links. 200 flows for each pair
// of a leaf and a spine of pod 0 go to pod 1; the mean over the pairs of the up-links that they use.
inline double core_links_used(std::int64_t k1, std::int64_t k2, const PathRules& rules) {
  scenario::Cluster cluster = topology::test::cluster_of(2 * k1 * k2, "clos-3tier");
  cluster.fabric->nics_per_node = 1;
  cluster.fabric->leaf_ports = k1;
  cluster.fabric->nodes_per_pod = k1 * k2;
  const topology::Fabric fabric = topology::build_fabric(topology::test::nvswitch_box(), cluster);
  LinkPaths paths{fabric, rules};
  const auto pod = static_cast<std::uint32_t>(k1 * k2);
  std::map<std::string, std::set<std::string>> used;  // by "leaf -> spine"
  std::vector<BundleUse> uses;
  for (std::uint32_t f = 0; f < 200 * pod; ++f) {
    uses.clear();
    paths.add({.from_port = f % pod, .to_port = pod + (f * 7) % pod, .local_qp = f, .remote_qp = f}, 1.0, 0, uses);
    // NIC, leaf, spine, core, spine, leaf, NIC: the second and third links.
    used[paths.slots().name(uses[1].bundle)].insert(paths.slots().name(uses[2].bundle));
  }
  double sum = 0.0;
  for (const auto& [pair, links] : used) sum += static_cast<double>(links.size());
  return sum / static_cast<double>(used.size());
}

}  // namespace stepcast::run::testing
