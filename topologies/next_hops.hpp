// topologies/next_hops.hpp — equal-cost next hops at the level of single links: which links a switch may
// send on towards a port of the network, over the links that work.
//
// Model    Shortest paths by links from a leaf to the destination's leaf among those that never climb to a
//          higher tier after they have stopped climbing (leaf < spine < core; links inside a tier do not
//          climb). A next hop is a usable link that starts such a shortest path. Per destination leaf:
//            down(s) = links from s without climbing,  any(s) = min(down(s), 1 + min over up-links any(t))   (1)
//          Two searches over the switches' links give both; they are kept until a link's state changes.
// Valid    every fabric whose NICs hang on leaves; parallel links count one by one
// Cost     first use of a destination leaf: O(links between switches) time, 2 bytes a switch; then O(ports of
//          the switch) a hop
// Ignores  routes that a fabric prefers for other reasons than their length
// Tests    unit/next_hops_test (by hand), property/path_choice_test (ideal shares as oracle)
#pragma once

#include <cstdint>
#include <vector>

#include "topologies/fabric.hpp"

namespace stepcast::topology {

class NextHops {
 public:
  // Keeps a reference: `fabric` must outlive it. All links work at first.
  explicit NextHops(const Fabric& fabric);

  void set_usable(LinkId link, bool usable);
  [[nodiscard]] bool usable(LinkId link) const { return usable_[link.index()]; }

  // Where a packet stands: at a device, and whether it has stopped climbing.
  struct Place {
    DeviceId device;
    bool descending = false;
  };
  // A packet that leaves by this port (Fabric::ports) of a NIC.
  [[nodiscard]] Place source(std::uint32_t port) const;
  [[nodiscard]] Place after(Place place, LinkId link) const;
  [[nodiscard]] bool arrived(Place place, std::uint32_t port) const { return place.device == source(port).device; }

  // The links to go on with towards a port, in id order; empty: none is left. Replaces `links`.
  void find(Place place, std::uint32_t to_port, std::vector<LinkId>& links);

 private:
  struct Distances {
    std::vector<std::uint8_t> down;  // [switch]; kUnreached
    std::vector<std::uint8_t> any;
  };
  static constexpr std::uint8_t kUnreached = 255;

  [[nodiscard]] std::size_t switch_of(DeviceId device) const { return device.index() - first_switch_; }
  [[nodiscard]] DeviceId leaf_of(std::uint32_t port) const { return fabric_.leaves[fabric_.ports[port].leaf].device; }
  [[nodiscard]] bool climbs(const Link& link) const { return fabric_.devices[link.to.index()].kind > fabric_.devices[link.from.index()].kind; }
  const Distances& distances(std::uint32_t leaf);
  [[nodiscard]] Distances search(DeviceId leaf) const;
  void add_usable(std::uint32_t bundle, DeviceId from, std::vector<LinkId>& links) const;

  const Fabric& fabric_;
  std::size_t first_switch_;
  std::vector<bool> usable_;                 // by link
  std::vector<std::uint32_t> out_begin_;     // by switch: its links to switches, in out_
  std::vector<LinkId> out_;
  std::vector<std::uint32_t> in_begin_;
  std::vector<LinkId> in_;
  std::vector<Distances> by_leaf_;           // empty until needed
};

}  // namespace stepcast::topology
