// topologies/next_hops.hpp — equal-cost next hops at the level of single links: which links a switch may
// send on towards a port of the network, over the links that work.
//
// Model    Shortest paths by links from a leaf to the destination's leaf among those that never climb to a
//          higher tier after they have stopped climbing (leaf < spine < core; links inside a tier do not
//          climb; a fabric found by search has one tier). A next hop is a usable link that starts such a shortest path. Per destination leaf:
//            down(s) = links from s without climbing,  any(s) = min(down(s), 1 + min over up-links any(t))   (1)
//          down: one search backwards from the leaf, kept until a link's state changes. any: by (1) when
//          asked, as soon as it meets its least possible value, 1 + the least down() of the tiers above.
// Valid    every fabric whose NICs hang on leaves; parallel links count one by one
// Cost     first use of a destination leaf: O(links from switches above it down to it) time, a byte a switch;
//          then O(ports of the switch) a hop where no link above is down
// Ignores  routes that a fabric prefers for other reasons than their length
// Tests    unit/next_hops_test (by hand), property/topology_property_test (even spreading as oracle)
#pragma once

#include <array>
#include <cstdint>
#include <span>
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
  struct Step {
    LinkId link;
    Place to;
  };
  // A packet that leaves by this port (Fabric::ports) of a NIC.
  [[nodiscard]] Place source(std::uint32_t port) const { return {.device = nic_of(port)}; }
  [[nodiscard]] bool arrived(Place place, std::uint32_t port) const { return place.device == nic_of(port); }

  // The links to go on with towards a port, those that climb first, each in id order; empty: none is left.
  // Replaces `steps`.
  void find(Place place, std::uint32_t to_port, std::vector<Step>& steps);

 private:
  static constexpr std::uint8_t kUnreached = 255;
  static constexpr int kTiers = 3;
  struct Towards {                            // a leaf
    std::vector<std::uint8_t> down;           // [switch]; empty until needed
    std::array<int, kTiers> least{};          // [tier]: 1 + the least down() above it
  };
  struct Hop {
    LinkId link;
    std::uint32_t other = 0;                  // switch at the other end
  };
  struct Hops {                               // of all switches
    std::vector<std::uint32_t> begin;
    std::vector<Hop> hops;
    [[nodiscard]] std::span<const Hop> of(std::size_t s) const { return {hops.data() + begin[s], begin[s + 1] - begin[s]}; }
  };

  [[nodiscard]] DeviceId nic_of(std::uint32_t port) const;
  [[nodiscard]] DeviceId device_of(std::uint32_t s) const { return DeviceId{first_switch_ + s}; }
  [[nodiscard]] bool works(LinkId link) const { return down_count_ == 0 || usable_[link.index()]; }
  [[nodiscard]] int any(const Towards& towards, std::size_t s) const;
  void search(std::uint32_t leaf, Towards& towards) const;
  void add_bundle(std::uint32_t bundle, DeviceId from, bool descending, std::vector<Step>& steps) const;

  const Fabric& fabric_;
  std::size_t first_switch_;
  std::vector<bool> usable_;                  // by link
  std::size_t down_count_ = 0;
  std::vector<std::uint8_t> tier_;            // by switch
  Hops up_;                                   // links that climb from a switch
  Hops on_;                                   // the others
  Hops from_above_;                           // links into a switch that do not climb
  std::vector<Towards> by_leaf_;
};

}  // namespace stepcast::topology
