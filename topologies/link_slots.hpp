// topologies/link_slots.hpp — what the solver shares out: bundles, or single links where parallel links
// can carry different loads.
// Layout   slot b is bundle b. With single links, every link of a bundle of several has a slot of its own
//          after them, and the bundle's own slot carries nothing.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "topologies/fabric.hpp"

namespace stepcast::topology {

class LinkSlots {
 public:
  // Keeps a reference: `fabric` must outlive it.
  LinkSlots(const Fabric& fabric, bool single_links);

  [[nodiscard]] std::size_t size() const { return fabric_.bundles.size() + own_.size(); }
  [[nodiscard]] double capacity(std::uint32_t slot) const;  // [B/s] of the intact fabric
  // Requires: single links, or the link is alone in its bundle.
  [[nodiscard]] std::uint32_t of(LinkId link) const;
  // The slot's link, or the first of its bundle.
  [[nodiscard]] const Link& link(std::uint32_t slot) const;
  // Of the slot: 1, or those of its bundle.
  [[nodiscard]] std::size_t links(std::uint32_t slot) const;
  // Of the devices it leads from and to.
  [[nodiscard]] std::pair<DeviceKind, DeviceKind> kinds(std::uint32_t slot) const;
  // False for the bundles whose links have slots of their own.
  [[nodiscard]] bool carries(std::uint32_t slot) const;
  // "leaf0 -> spine3", or "leaf0 -> spine0 (x32)" for a bundle.
  [[nodiscard]] std::string name(std::uint32_t slot) const;

 private:
  const Fabric& fabric_;
  std::vector<LinkId> own_;                 // links with a slot of their own
  std::vector<std::uint32_t> slot_;         // by link; empty without single links
};

}  // namespace stepcast::topology
