#include "topologies/graph_paths.hpp"

#include <algorithm>
#include <limits>

#include "sim/base/check.hpp"

namespace stepcast::topology {
namespace {

constexpr std::uint16_t kFar = std::numeric_limits<std::uint16_t>::max();
constexpr std::size_t kMostKept = 16U << 20U;  // distances of 2 bytes

}  // namespace

GraphPaths::GraphPaths(const Fabric& fabric, const NetworkPart& part)
    : fabric_{fabric}, first_switch_{part.first_switch}, switches_{part.switches}, first_leaf_{part.first_leaf}, begin_(switches_ + 1, 0) {
  const auto is_own = [&](DeviceId device) { return device.value() >= first_switch_ && device.value() - first_switch_ < switches_; };
  const auto each = [&](auto use) {
    for (std::uint32_t b = fabric.nodes * fabric.host.bundles; b < fabric.bundles.size(); ++b) {
      const Link& link = fabric.links[fabric.bundles[b].links.front().index()];
      if (is_own(link.from) && is_own(link.to))
        use(link.from.value() - first_switch_, Hop{link.to.value() - first_switch_, b});
    }
  };
  each([&](std::uint32_t s, const Hop&) { ++begin_[s + 1]; });
  for (std::uint32_t s = 0; s < switches_; ++s) begin_[s + 1] += begin_[s];
  hops_.resize(begin_.back());
  std::vector<std::uint32_t> next = begin_;
  each([&](std::uint32_t s, const Hop& hop) { hops_[next[s]++] = hop; });
  if (std::size_t{part.leaves} * switches_ > kMostKept) return;
  distance_.resize(std::size_t{part.leaves} * switches_);
  for (std::uint32_t l = 0; l < part.leaves; ++l)
    search(switch_of(first_leaf_ + l), std::span{distance_}.subspan(std::size_t{l} * switches_, switches_));
}

std::uint32_t GraphPaths::switch_of(std::uint32_t leaf) const { return fabric_.leaves[leaf].device.value() - first_switch_; }

void GraphPaths::search(std::uint32_t to, std::span<std::uint16_t> distance) const {
  std::fill(distance.begin(), distance.end(), kFar);
  distance[to] = 0;
  std::vector<std::uint32_t> reached{to};
  for (std::size_t i = 0; i < reached.size(); ++i) {
    for (const Hop& hop : hops_of(reached[i])) {
      if (distance[hop.other] != kFar) continue;
      SIM_CHECK(distance[reached[i]] + 1 < kFar, reached[i]);
      distance[hop.other] = static_cast<std::uint16_t>(distance[reached[i]] + 1);
      reached.push_back(hop.other);
    }
  }
}

GraphPaths::Reach GraphPaths::add(std::uint32_t from_leaf, std::uint32_t to_leaf, double weight, std::vector<Path::Share>& shares) const {
  std::vector<std::uint16_t> own;
  std::span<const std::uint16_t> distance;
  if (distance_.empty()) {
    own.resize(switches_);
    search(switch_of(to_leaf), own);
    distance = own;
  } else {
    distance = std::span{distance_}.subspan(std::size_t{to_leaf - first_leaf_} * switches_, switches_);
  }
  const std::uint32_t source = switch_of(from_leaf);
  SIM_CHECK(distance[source] != kFar, from_leaf, to_leaf);
  struct Here {
    double arriving = 0.0;
    Duration at;
  };
  std::vector<Here> here(switches_);
  here[source].arriving = weight;
  std::vector<std::uint32_t> level{source};
  std::vector<std::uint32_t> nearer;
  for (std::uint16_t left = distance[source]; left > 0; --left) {
    nearer.clear();
    for (const std::uint32_t s : level) {
      std::size_t links = 0;
      for (const Hop& hop : hops_of(s))
        if (distance[hop.other] + 1 == left) links += fabric_.bundles[hop.bundle].links.size();
      for (const Hop& hop : hops_of(s)) {
        if (distance[hop.other] + 1 != left) continue;
        const Bundle& bundle = fabric_.bundles[hop.bundle];
        const double part = here[s].arriving * static_cast<double>(bundle.links.size()) / static_cast<double>(links);
        shares.push_back({hop.bundle, part});
        if (here[hop.other].arriving == 0.0) nearer.push_back(hop.other);
        here[hop.other].arriving += part;
        here[hop.other].at = std::max(here[hop.other].at, here[s].at + fabric_.links[bundle.links.front().index()].latency);
      }
    }
    level.swap(nearer);
  }
  return {here[switch_of(to_leaf)].at, distance[source]};
}

}  // namespace stepcast::topology
