// topologies/spread.hpp — ideal even spreading by graph search (Boost.Graph): the share of one unit of
// traffic that each link carries when every device sends it on evenly over all its links that lie on a
// shortest path (by links) to the target. The router uses it inside a host; over a whole fabric it is
// the oracle that the router's shortcuts are tested against.
// Cost     one breadth-first search over the fabric per call
// Ignores  link rates: two links of different rate on shortest paths carry the same
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "topologies/fabric.hpp"

namespace stepcast::topology {

struct Spread {
  std::vector<double> link_share;  // by link of the span
  Duration latency;                // along the longest of the paths
  int links = 0;                   // on every path
  int switches = 0;                // NVSwitches, leaves, spines, cores on every path
};

enum class LinkSet : std::uint8_t { kNvlinkOnly, kNotNvlink };

// Over the first `devices` devices and the given links (all ends among these). Only switches and root
// complexes pass traffic on, and GPUs within kNvlinkOnly. Nothing: no path.
std::optional<Spread> spread_evenly(const Fabric& fabric, std::size_t devices, std::span<const Link> links, LinkSet allowed,
                                    DeviceId from, DeviceId to);

}  // namespace stepcast::topology
