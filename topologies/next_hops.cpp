#include "topologies/next_hops.hpp"

#include <algorithm>

#include "sim/base/check.hpp"

namespace stepcast::topology {

static_assert(DeviceKind::kNic < DeviceKind::kLeaf && DeviceKind::kLeaf < DeviceKind::kSpine && DeviceKind::kSpine < DeviceKind::kCore);

NextHops::NextHops(const Fabric& fabric)
    : fabric_{fabric},
      first_switch_{std::size_t{fabric.nodes} * fabric.host.devices},
      usable_(fabric.links.size(), true),
      by_leaf_(fabric.leaves.size()) {
  const std::size_t switches = fabric.devices.size() - first_switch_;
  const auto between_switches = [&](const Link& link) { return link.from.index() >= first_switch_ && link.to.index() >= first_switch_; };
  const auto fill = [&](DeviceId Link::*end, std::vector<std::uint32_t>& begin, std::vector<LinkId>& list) {
    begin.assign(switches + 1, 0);
    for (const Link& link : fabric.links)
      if (between_switches(link)) ++begin[switch_of(link.*end) + 1];
    for (std::size_t s = 0; s < switches; ++s) begin[s + 1] += begin[s];
    list.resize(begin.back());
    std::vector<std::uint32_t> next = begin;
    for (std::uint32_t id = 0; id < fabric.links.size(); ++id)
      if (between_switches(fabric.links[id])) list[next[switch_of(fabric.links[id].*end)]++] = LinkId{id};
  };
  fill(&Link::from, out_begin_, out_);
  fill(&Link::to, in_begin_, in_);
}

void NextHops::set_usable(LinkId link, bool usable) {
  if (usable_[link.index()] == usable) return;
  usable_[link.index()] = usable;
  std::fill(by_leaf_.begin(), by_leaf_.end(), Distances{});
}

NextHops::Place NextHops::source(std::uint32_t port) const {
  return {.device = fabric_.links[fabric_.bundles[fabric_.ports[port].up].links.front().index()].from};
}

NextHops::Place NextHops::after(Place place, LinkId link) const {
  const Link& over = fabric_.links[link.index()];
  return {.device = over.to, .descending = place.descending || !climbs(over)};
}

void NextHops::add_usable(std::uint32_t bundle, DeviceId from, std::vector<LinkId>& links) const {
  for (const LinkId id : fabric_.bundles[bundle].links)
    if (usable_[id.index()] && fabric_.links[id.index()].from == from) links.push_back(id);
}

void NextHops::find(Place place, std::uint32_t to_port, std::vector<LinkId>& links) {
  links.clear();
  const Port& to = fabric_.ports[to_port];
  const DeviceId last = leaf_of(to_port);
  const Distances& d = distances(to.leaf);
  if (place.device.index() < first_switch_) {  // a NIC: on to its leaf, if that has a way
    const Port& from = fabric_.ports[std::size_t{fabric_.devices[place.device.index()].node} * fabric_.nics_per_node() +
                                     fabric_.devices[place.device.index()].index];
    if (d.any[switch_of(fabric_.leaves[from.leaf].device)] != kUnreached) add_usable(from.up, place.device, links);
    return;
  }
  if (place.device == last) {
    add_usable(to.down, place.device, links);
    return;
  }
  const std::size_t s = switch_of(place.device);
  const int left = place.descending ? d.down[s] : d.any[s];
  if (left == kUnreached) return;
  for (std::uint32_t i = out_begin_[s]; i < out_begin_[s + 1]; ++i) {
    const Link& link = fabric_.links[out_[i].index()];
    if (!usable_[out_[i].index()]) continue;
    const bool up = climbs(link);
    if (up && place.descending) continue;
    const std::size_t t = switch_of(link.to);
    if ((up ? d.any[t] : d.down[t]) + 1 == left) links.push_back(out_[i]);
  }
}

const NextHops::Distances& NextHops::distances(std::uint32_t leaf) {
  Distances& d = by_leaf_[leaf];
  if (d.any.empty()) d = search(fabric_.leaves[leaf].device);
  return d;
}

// Equation (1): backwards from the leaf over links that do not climb, then over those that do.
NextHops::Distances NextHops::search(DeviceId leaf) const {
  const std::size_t switches = out_begin_.size() - 1;
  Distances d{.down = std::vector<std::uint8_t>(switches, kUnreached), .any = {}};
  std::vector<std::vector<std::uint32_t>> level(1);  // switches by down(s), later by any(s)
  d.down[switch_of(leaf)] = 0;
  level[0].push_back(static_cast<std::uint32_t>(switch_of(leaf)));
  const auto relax = [&](std::vector<std::uint8_t>& distance, bool climbing) {
    for (std::size_t l = 0; l < level.size(); ++l) {
      for (std::size_t n = 0; n < level[l].size(); ++n) {
        const std::uint32_t s = level[l][n];
        if (distance[s] != l) continue;  // came nearer since
        for (std::uint32_t i = in_begin_[s]; i < in_begin_[s + 1]; ++i) {
          const Link& link = fabric_.links[in_[i].index()];
          if (!usable_[in_[i].index()] || climbs(link) != climbing) continue;
          const std::size_t t = switch_of(link.from);
          if (distance[t] <= l + 1) continue;
          SIM_CHECK(l + 1 < kUnreached, l);
          distance[t] = static_cast<std::uint8_t>(l + 1);
          if (level.size() == l + 1) level.emplace_back();
          level[l + 1].push_back(static_cast<std::uint32_t>(t));
        }
      }
    }
  };
  relax(d.down, false);
  d.any = d.down;
  relax(d.any, true);
  return d;
}

}  // namespace stepcast::topology
