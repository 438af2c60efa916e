#include "topologies/spread.hpp"

#include <algorithm>

#include <boost/graph/breadth_first_search.hpp>
#include <boost/graph/compressed_sparse_row_graph.hpp>

namespace stepcast::topology {

namespace {

// Traffic flows from -> to; the search runs from the target, so edges are stored reversed.
using Graph = boost::compressed_sparse_row_graph<boost::directedS, boost::no_property, std::uint32_t>;

bool forwards(DeviceKind kind, LinkSet allowed) {
  switch (kind) {
    case DeviceKind::kGpu: return allowed == LinkSet::kNvlinkOnly;
    case DeviceKind::kHostMemory:
    case DeviceKind::kCpu:
    case DeviceKind::kNic: return false;
    default: return true;
  }
}

bool counts_as_switch(DeviceKind kind) {
  return kind == DeviceKind::kNvswitch || kind == DeviceKind::kLeaf || kind == DeviceKind::kSpine || kind == DeviceKind::kCore;
}

}  // namespace

std::optional<Spread> spread_evenly(const Fabric& fabric, std::size_t devices, std::span<const Link> links, LinkSet allowed,
                                    DeviceId from, DeviceId to) {
  const auto kind = [&](std::size_t device) { return fabric.devices[device].kind; };
  // NICs end a leg inside a host; across the network they pass between PCIe and the wire.
  const auto passes = [&](std::size_t device) { return device == from.index() || device == to.index() || forwards(kind(device), allowed); };
  std::vector<std::pair<std::size_t, std::size_t>> reversed;
  std::vector<std::uint32_t> ids;
  for (std::uint32_t id = 0; id < links.size(); ++id) {
    const Link& link = links[id];
    if ((link.kind == LinkKind::kNvlink) != (allowed == LinkSet::kNvlinkOnly)) continue;
    if (!passes(link.from.index()) || !passes(link.to.index())) continue;
    reversed.emplace_back(link.to.index(), link.from.index());
    ids.push_back(id);
  }
  const Graph graph(boost::edges_are_unsorted_multi_pass, reversed.begin(), reversed.end(), ids.begin(), devices);

  constexpr int kUnreached = -1;
  std::vector<int> distance(devices, kUnreached);
  distance[to.index()] = 0;
  std::vector<std::size_t> order;  // by distance from the target
  auto record = boost::make_bfs_visitor(std::make_pair(boost::record_distances(distance.data(), boost::on_tree_edge{}),
      boost::write_property(boost::identity_property_map{}, std::back_inserter(order), boost::on_discover_vertex{})));
  boost::breadth_first_search(graph, to.index(), boost::visitor(record));
  if (distance[from.index()] == kUnreached) return std::nullopt;

  // Onward links of each device: those that come one step nearer.
  std::vector<std::vector<std::uint32_t>> onward(devices);
  for (const std::uint32_t id : ids) {
    const std::size_t a = links[id].from.index();
    const std::size_t b = links[id].to.index();
    if (distance[a] != kUnreached && distance[b] != kUnreached && distance[a] == distance[b] + 1) onward[a].push_back(id);
  }
  Spread spread{.link_share = std::vector<double>(links.size(), 0.0), .latency = {}, .links = distance[from.index()], .switches = 0};
  std::vector<double> arriving(devices, 0.0);
  std::vector<Duration> at(devices);
  arriving[from.index()] = 1.0;
  std::size_t level_switch = from.index();  // all devices of a level are of one kind here
  int level = distance[from.index()];
  for (auto device = order.rbegin(); device != order.rend(); ++device) {
    if (arriving[*device] == 0.0 || distance[*device] > distance[from.index()]) continue;
    if (distance[*device] < level) {
      level = distance[*device];
      level_switch = *device;
      if (level > 0 && counts_as_switch(kind(level_switch))) ++spread.switches;
    }
    const double each = arriving[*device] / static_cast<double>(std::max<std::size_t>(1, onward[*device].size()));
    for (const std::uint32_t id : onward[*device]) {
      const std::size_t next = links[id].to.index();
      spread.link_share[id] += each;
      arriving[next] += each;
      at[next] = std::max(at[next], at[*device] + links[id].latency);
    }
  }
  spread.latency = at[to.index()];
  return spread;
}

}  // namespace stepcast::topology
