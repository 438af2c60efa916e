// topologies/failures.hpp — links of the network that fail or slow down: names to links.
// Names    link: "leaf0 <-> spine3" (both ways) or "leaf0 -> spine3" (one way), all parallel ones;
//          switch: "spine3", all its links. Device names are those that `topology` prints.
// Model    from `at` on a link carries `fraction` of its capacity; 0: it is down and routing goes around it
// Ignores  links inside hosts; the time that routing takes to notice
// Tests    unit/failures_test
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/scenario/cluster_section.hpp"
#include "topologies/fabric.hpp"

namespace stepcast::topology {

struct LinkChange {
  Duration at;
  double fraction = 0.0;
  std::vector<LinkId> links;
};

// In order of time, then of the list. Throws UserError at cluster.fabric.failures[i] for names that are not
// links or switches of the network.
std::vector<LinkChange> find_failures(const Fabric& fabric, std::span<const scenario::Failure> failures);

}  // namespace stepcast::topology
