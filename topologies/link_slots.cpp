#include "topologies/link_slots.hpp"

#include <fmt/format.h>

#include "sim/base/check.hpp"

namespace stepcast::topology {

LinkSlots::LinkSlots(const Fabric& fabric, bool single_links) : fabric_{fabric} {
  if (!single_links) return;
  slot_.resize(fabric.links.size());
  for (std::uint32_t id = 0; id < fabric.links.size(); ++id) {
    const std::uint32_t bundle = fabric.links[id].bundle;
    slot_[id] = bundle;
    if (fabric.bundles[bundle].links.size() == 1) continue;
    slot_[id] = static_cast<std::uint32_t>(size());
    own_.push_back(LinkId{id});
  }
}

double LinkSlots::capacity(std::uint32_t slot) const {
  if (slot < fabric_.bundles.size()) return fabric_.bundles[slot].capacity.si();
  return fabric_.links[own_[slot - fabric_.bundles.size()].index()].capacity().si();
}

std::uint32_t LinkSlots::of(LinkId link) const {
  if (!slot_.empty()) return slot_[link.index()];
  const std::uint32_t bundle = fabric_.links[link.index()].bundle;
  SIM_CHECK(fabric_.bundles[bundle].links.size() == 1, link.value(), bundle);
  return bundle;
}

const Link& LinkSlots::link(std::uint32_t slot) const {
  const bool whole = slot < fabric_.bundles.size();
  const LinkId first = whole ? fabric_.bundles[slot].links.front() : own_[slot - fabric_.bundles.size()];
  return fabric_.links[first.index()];
}

std::size_t LinkSlots::links(std::uint32_t slot) const {
  return slot < fabric_.bundles.size() ? fabric_.bundles[slot].links.size() : 1;
}

std::pair<DeviceKind, DeviceKind> LinkSlots::kinds(std::uint32_t slot) const {
  const Link& of = link(slot);
  return {fabric_.devices[of.from.index()].kind, fabric_.devices[of.to.index()].kind};
}

bool LinkSlots::carries(std::uint32_t slot) const {
  return slot_.empty() || slot >= fabric_.bundles.size() || fabric_.bundles[slot].links.size() == 1;
}

std::string LinkSlots::name(std::uint32_t slot) const {
  const bool whole = slot < fabric_.bundles.size();
  const Link& link = this->link(slot);
  std::string name = fmt::format("{} -> {}", fabric_.devices[link.from.index()].name, fabric_.devices[link.to.index()].name);
  if (whole && fabric_.bundles[slot].links.size() > 1) name += fmt::format(" (x{})", fabric_.bundles[slot].links.size());
  return name;
}

}  // namespace stepcast::topology
