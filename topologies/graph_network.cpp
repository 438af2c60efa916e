#include "topologies/graph_network.hpp"

#include <algorithm>
#include <limits>

#include "sim/base/check.hpp"
#include "topologies/fabric_builder.hpp"

namespace stepcast::topology {
namespace {

constexpr std::uint32_t kFar = std::numeric_limits<std::uint32_t>::max();

std::vector<std::vector<std::uint32_t>> neighbours(const GraphNetwork& network) {
  std::vector<std::vector<std::uint32_t>> near(network.switches.size());
  for (const GraphNetwork::Cable& cable : network.cables) {
    near[cable.a].push_back(cable.b);
    near[cable.b].push_back(cable.a);
  }
  return near;
}

// Links to the nearest of `sources`; kFar: none is reached.
std::vector<std::uint32_t> distances(const std::vector<std::vector<std::uint32_t>>& near, std::vector<std::uint32_t> sources) {
  std::vector<std::uint32_t> distance(near.size(), kFar);
  for (const std::uint32_t s : sources) distance[s] = 0;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    for (const std::uint32_t t : near[sources[i]]) {
      if (distance[t] != kFar) continue;
      distance[t] = distance[sources[i]] + 1;
      sources.push_back(t);
    }
  }
  return distance;
}

DeviceKind kind_at(std::uint32_t distance) {
  return distance == 0 ? DeviceKind::kLeaf : distance == 1 ? DeviceKind::kSpine : DeviceKind::kCore;
}

}  // namespace

void add_graph_network(Fabric& fabric, NetworkPart& part, const Nic& nic, const GraphNetwork& network) {
  SIM_CHECK(network.attachments.size() == part.nodes.size() * part.nics, network.attachments.size());
  part.first_leaf = static_cast<std::uint32_t>(fabric.leaves.size());
  part.first_group = static_cast<std::uint32_t>(fabric.groups.size());
  FabricBuilder build{fabric};
  const auto near = neighbours(network);
  std::vector<std::uint32_t> with_nics;
  std::vector<std::optional<std::uint32_t>> leaf_of(network.switches.size());
  for (const auto& attachment : network.attachments) leaf_of[attachment.to] = 0;
  for (std::uint32_t s = 0; s < leaf_of.size(); ++s)
    if (leaf_of[s]) with_nics.push_back(s);
  const std::vector<std::uint32_t> distance = distances(near, with_nics);

  std::vector<DeviceId> devices;
  std::vector<std::uint32_t> of_kind(static_cast<std::size_t>(DeviceKind::kCore) + 1, 0);
  for (std::uint32_t s = 0; s < network.switches.size(); ++s) {
    const DeviceKind kind = network.is_cables ? DeviceKind::kCable : kind_at(distance[s]);
    devices.push_back(build.device(kind, part.prefix() + network.switches[s], 0, of_kind[static_cast<std::size_t>(kind)]++));
  }
  // Switches that reach each other are one group.
  std::vector<std::uint32_t> group(network.switches.size(), kFar);
  for (const std::uint32_t s : with_nics) {
    leaf_of[s] = static_cast<std::uint32_t>(fabric.leaves.size());
    if (group[s] == kFar) {
      const std::vector<std::uint32_t> from_here = distances(near, {s});
      for (std::uint32_t t = 0; t < group.size(); ++t)
        if (from_here[t] != kFar) group[t] = static_cast<std::uint32_t>(fabric.groups.size());
      fabric.groups.emplace_back();
    }
    fabric.leaves.push_back({devices[s], group[s], {}, {}});
  }

  part.by_search = true;
  part.leaves = static_cast<std::uint32_t>(fabric.leaves.size()) - part.first_leaf;
  part.groups = static_cast<std::uint32_t>(fabric.groups.size()) - part.first_group;
  const Duration half = Duration::picoseconds(nic.latency.value.count() / 2);
  const auto spec = [&](const GraphLinks& links, Duration latency) {
    return LinkSpec{LinkKind::kNetwork, links.rate.value_or(nic.line_rate.value), nic.efficiency.value, links.latency.value_or(latency)};
  };
  for (std::size_t p = 0; p < network.attachments.size(); ++p) {
    const GraphNetwork::Attachment& at = network.attachments[p];
    const std::uint32_t node = part.nodes[p / part.nics];
    const std::uint32_t local = part.first_nic + static_cast<std::uint32_t>(p % part.nics);
    const DeviceId device{node * fabric.host.devices + fabric.host.nics[local]};
    const int count = static_cast<int>(at.links.count);
    Port& port = fabric.ports[std::size_t{node} * fabric.nics_per_node() + local];
    port.attached = true;
    port.leaf = *leaf_of[at.to];
    port.up = build.link(device, devices[at.to], spec(at.links, half), count);
    port.down = build.link(devices[at.to], device, spec(at.links, network.is_cables ? half : half + nic.switch_latency.value), count);
  }
  for (const GraphNetwork::Cable& cable : network.cables)
    build.duplex(devices[cable.a], devices[cable.b], spec(cable.links, nic.switch_latency.value), static_cast<int>(cable.links.count));
}

}  // namespace stepcast::topology
