#include "topologies/next_hops.hpp"

#include <algorithm>
#include <limits>

#include "sim/base/check.hpp"

namespace stepcast::topology {
namespace {

constexpr int kNever = std::numeric_limits<int>::max() / 2;

int tier_of(DeviceKind kind) { return static_cast<int>(kind) - static_cast<int>(DeviceKind::kLeaf); }
static_assert(static_cast<int>(DeviceKind::kSpine) == static_cast<int>(DeviceKind::kLeaf) + 1);
static_assert(static_cast<int>(DeviceKind::kCore) == static_cast<int>(DeviceKind::kLeaf) + 2);

}  // namespace

NextHops::NextHops(const Fabric& fabric)
    : fabric_{fabric},
      first_switch_{fabric.first_switch},
      usable_(fabric.links.size(), true),
      by_leaf_(fabric.leaves.size()) {
  tier_.assign(fabric.devices.size() - first_switch_, 0);
  for (const NetworkPart& part : fabric.networks) {
    if (part.by_search) continue;  // of any shape, without tiers: plain shortest paths
    for (std::uint32_t d = part.first_switch; d < part.first_switch + part.switches; ++d) {
      tier_[d - first_switch_] = static_cast<std::uint8_t>(tier_of(fabric.devices[d].kind));
      SIM_CHECK(tier_[d - first_switch_] < kTiers, d);
    }
  }
  // Links of one sort by the switch at one end, in id order.
  const auto collect = [&](DeviceId Link::*at, DeviceId Link::*other, bool climbing) {
    Hops hops;
    hops.begin.assign(tier_.size() + 1, 0);
    const auto each = [&](auto use) {
      for (std::uint32_t id = 0; id < fabric.links.size(); ++id) {
        const Link& link = fabric.links[id];
        if (link.from.index() < first_switch_ || link.to.index() < first_switch_) continue;
        const std::size_t a = link.from.index() - first_switch_;
        const std::size_t b = link.to.index() - first_switch_;
        if ((tier_[b] > tier_[a]) == climbing) use(LinkId{id}, (link.*at).index() - first_switch_, (link.*other).index() - first_switch_);
      }
    };
    each([&](LinkId, std::size_t s, std::size_t) { ++hops.begin[s + 1]; });
    for (std::size_t s = 0; s < tier_.size(); ++s) hops.begin[s + 1] += hops.begin[s];
    hops.hops.resize(hops.begin.back());
    std::vector<std::uint32_t> next = hops.begin;
    each([&](LinkId id, std::size_t s, std::size_t t) { hops.hops[next[s]++] = {id, static_cast<std::uint32_t>(t)}; });
    return hops;
  };
  up_ = collect(&Link::from, &Link::to, true);
  on_ = collect(&Link::from, &Link::to, false);
  from_above_ = collect(&Link::to, &Link::from, false);
}

void NextHops::set_usable(LinkId link, bool usable) {
  if (usable_[link.index()] == usable) return;
  usable_[link.index()] = usable;
  down_count_ = usable ? down_count_ - 1 : down_count_ + 1;
  std::fill(by_leaf_.begin(), by_leaf_.end(), Towards{});
}

DeviceId NextHops::nic_of(std::uint32_t port) const {
  const std::uint32_t nics = fabric_.nics_per_node();
  return DeviceId{port / nics * fabric_.host.devices + fabric_.host.nics[port % nics]};
}

void NextHops::add_bundle(std::uint32_t bundle, DeviceId from, bool descending, std::vector<Step>& steps) const {
  for (const LinkId id : fabric_.bundles[bundle].links) {
    const Link& link = fabric_.links[id.index()];
    if (works(id) && link.from == from) steps.push_back({id, {.device = link.to, .descending = descending}});
  }
}

void NextHops::find(Place place, std::uint32_t to_port, std::vector<Step>& steps) {
  steps.clear();
  const Port& to = fabric_.ports[to_port];
  Towards& towards = by_leaf_[to.leaf];
  if (towards.down.empty()) search(to.leaf, towards);
  if (place.device.index() < first_switch_) {  // a NIC: on to its leaf, if that has a way
    const Device& nic = fabric_.devices[place.device.index()];
    const Port& from = fabric_.ports[std::size_t{nic.node} * fabric_.nics_per_node() + nic.index];
    const std::size_t leaf = fabric_.leaves[from.leaf].device.index() - first_switch_;
    if (any(towards, leaf) < kNever) add_bundle(from.up, place.device, false, steps);
    return;
  }
  const std::size_t s = place.device.index() - first_switch_;
  if (towards.down[s] == 0) {
    add_bundle(to.down, place.device, true, steps);
    return;
  }
  const int down = towards.down[s] == kUnreached ? kNever : towards.down[s];
  int left = down;
  if (!place.descending && down >= towards.least[tier_[s]]) {
    for (const Hop& hop : up_.of(s)) {
      if (!works(hop.link)) continue;
      const int over = 1 + any(towards, hop.other);
      if (over > left || over >= kNever) continue;
      if (over < left) steps.clear();
      left = over;
      steps.push_back({hop.link, {.device = device_of(hop.other)}});
    }
  }
  if (down != left || left >= kNever) return;
  for (const Hop& hop : on_.of(s))
    if (towards.down[hop.other] + 1 == down && works(hop.link)) steps.push_back({hop.link, {.device = device_of(hop.other), .descending = true}});
}

// Equation (1), its second part.
int NextHops::any(const Towards& towards, std::size_t s) const {
  const int least = towards.least[tier_[s]];
  int best = towards.down[s] == kUnreached ? kNever : towards.down[s];
  if (best <= least) return best;
  for (const Hop& hop : up_.of(s)) {
    if (!works(hop.link)) continue;
    best = std::min(best, 1 + any(towards, hop.other));
    if (best == least) break;
  }
  return best;
}

// Equation (1), its first part: backwards over links that do not climb.
void NextHops::search(std::uint32_t leaf, Towards& towards) const {
  towards.down.assign(tier_.size(), kUnreached);
  std::vector<std::uint32_t> reached{static_cast<std::uint32_t>(fabric_.leaves[leaf].device.index() - first_switch_)};
  towards.down[reached[0]] = 0;
  std::array<int, kTiers> lowest;
  lowest.fill(kNever);
  for (std::size_t n = 0; n < reached.size(); ++n) {
    const std::uint32_t s = reached[n];
    const int links = towards.down[s];
    lowest[tier_[s]] = std::min(lowest[tier_[s]], links);
    for (const Hop& hop : from_above_.of(s)) {
      if (towards.down[hop.other] != kUnreached || !works(hop.link)) continue;
      SIM_CHECK(links + 1 < kUnreached, links);
      towards.down[hop.other] = static_cast<std::uint8_t>(links + 1);
      reached.push_back(hop.other);
    }
  }
  towards.least.fill(kNever);
  for (int t = kTiers - 1; t-- > 0;) towards.least[t] = std::min(1 + lowest[t + 1], towards.least[t + 1]);
}

}  // namespace stepcast::topology
