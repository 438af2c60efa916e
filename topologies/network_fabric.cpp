#include "topologies/network_fabric.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "topologies/fabric_builder.hpp"

namespace stepcast::topology {

namespace {

// Up-links of a switch with `down` down-links of `rate` under an oversubscription: a whole number of
// equal links whose sum is down * rate / oversubscription exactly.
struct Uplinks {
  std::uint32_t count = 0;
  Bandwidth rate;
};

Uplinks uplinks(std::uint32_t down, Bandwidth rate, double oversubscription) {
  const double wanted = static_cast<double>(down) / oversubscription;
  const auto count = static_cast<std::uint32_t>(std::max(1.0, std::ceil(wanted - 1e-9)));  // 1e-9: 32 / 1.0 is 32, whatever the rounding
  return {count, rate * (wanted / count)};
}

struct NetworkBuilder {
  Fabric& fabric;
  NetworkPart& part;
  const Nic& nic;
  const NetworkPlan& plan;
  FabricBuilder build{fabric};
  std::uint32_t nics = part.nics;
  std::vector<std::vector<std::uint32_t>> group_leaves{};
  std::vector<std::vector<DeviceId>> group_spines{};
  std::vector<std::uint32_t> down_ports{};  // used, by leaf
  Uplinks leaf_up{};

  LinkSpec spec(Bandwidth rate, Duration latency) const { return {LinkKind::kNetwork, rate, nic.efficiency.value, latency}; }

  // The leaf of each (node, NIC), numbered densely in the order they are met.
  void leaves() {
    const auto nodes = static_cast<std::uint32_t>(part.nodes.size());
    const std::uint32_t pods = (nodes + plan.nodes_per_pod - 1) / plan.nodes_per_pod;
    const std::uint32_t nodes_per_leaf = std::max(1U, plan.leaf_ports / std::max(1U, nics));
    const std::uint32_t leaves_per_pod = plan.by_rail ? nics : (plan.nodes_per_pod + nodes_per_leaf - 1) / nodes_per_leaf;
    std::vector<std::optional<std::uint32_t>> dense(std::size_t{pods} * leaves_per_pod);
    const Duration half = Duration::picoseconds(nic.latency.value.count() / 2);
    for (std::uint32_t n = 0; n < nodes; ++n) {
      const std::uint32_t pod = n / plan.nodes_per_pod;
      for (std::uint32_t j = 0; j < nics; ++j) {
        const std::uint32_t in_pod = plan.by_rail ? j : (n % plan.nodes_per_pod) / nodes_per_leaf;
        std::optional<std::uint32_t>& index = dense[std::size_t{pod} * leaves_per_pod + in_pod];
        if (!index) index = add_leaf(plan.cores ? pod : plan.join_rails ? j % plan.planes : j);
        const std::uint32_t local = part.first_nic + j;
        const DeviceId device{part.nodes[n] * fabric.host.devices + fabric.host.nics[local]};
        const DeviceId leaf = fabric.leaves[part.first_leaf + *index].device;
        Port& port = fabric.ports[std::size_t{part.nodes[n]} * fabric.nics_per_node() + local];
        port.attached = true;
        port.leaf = part.first_leaf + *index;
        port.up = build.link(device, leaf, spec(nic.line_rate.value, half));
        port.down = build.link(leaf, device, spec(nic.line_rate.value, half + nic.switch_latency.value));
        ++down_ports[*index];
      }
    }
  }

  std::uint32_t add_leaf(std::uint32_t group) {
    const std::uint32_t index = part.leaves++;
    fabric.leaves.push_back({build.device(DeviceKind::kLeaf, fmt::format("{}leaf{}", part.prefix(), index), 0, index), part.first_group + group, {}, {}});
    down_ports.push_back(0);
    if (group >= group_leaves.size()) group_leaves.resize(group + 1);
    group_leaves[group].push_back(index);
    return index;
  }

  void spines() {
    leaf_up = uplinks(*std::max_element(down_ports.begin(), down_ports.end()), nic.line_rate.value, plan.oversubscription);
    part.groups = static_cast<std::uint32_t>(group_leaves.size());
    fabric.groups.resize(part.first_group + part.groups);
    group_spines.resize(group_leaves.size());
    const LinkSpec link = spec(leaf_up.rate, nic.switch_latency.value);
    std::uint32_t next = 0;
    for (std::size_t group = 0; group < group_leaves.size(); ++group) {
      const bool joins_groups = plan.cores && group_leaves.size() > 1;
      if (group_leaves[group].size() < 2 && !joins_groups) continue;  // one leaf needs no spine
      std::vector<DeviceId>& spines = group_spines[group];
      for (std::uint32_t s = 0; s < leaf_up.count; ++s, ++next)
        spines.push_back(build.device(DeviceKind::kSpine, fmt::format("{}spine{}", part.prefix(), next), 0, next));
      for (const std::uint32_t index : group_leaves[group]) {
        Leaf& leaf = fabric.leaves[part.first_leaf + index];
        leaf.up = build.bundle();
        leaf.down = build.bundle();
        for (const DeviceId spine : spines) {
          build.link(leaf.device, spine, link, *leaf.up);
          build.link(spine, leaf.device, link, *leaf.down);
        }
      }
    }
  }

  // Spine s of every group meets the same cores: a plane of them.
  void cores() {
    if (!plan.cores || group_leaves.size() < 2) return;
    std::size_t most_leaves = 0;
    for (const auto& leaves : group_leaves) most_leaves = std::max(most_leaves, leaves.size());
    const Uplinks up = uplinks(static_cast<std::uint32_t>(most_leaves), leaf_up.rate, plan.core_oversubscription);
    const LinkSpec link = spec(up.rate, nic.switch_latency.value);
    std::vector<DeviceId> devices;
    for (std::uint32_t c = 0; c < leaf_up.count * up.count; ++c)
      devices.push_back(build.device(DeviceKind::kCore, fmt::format("{}core{}", part.prefix(), c), 0, c));
    for (std::size_t group = 0; group < group_leaves.size(); ++group) {
      SpineGroup& ends = fabric.groups[part.first_group + group];
      ends.up = build.bundle();
      ends.down = build.bundle();
      for (std::uint32_t s = 0; s < leaf_up.count; ++s) {
        for (std::uint32_t v = 0; v < up.count; ++v) {
          const DeviceId core = devices[s * up.count + v];
          build.link(group_spines[group][s], core, link, *ends.up);
          build.link(core, group_spines[group][s], link, *ends.down);
        }
      }
    }
    note_ports("core", group_leaves.size());
  }

  void note_ports(std::string_view tier, std::size_t needed) {
    const std::size_t ports = 2 * std::size_t{plan.leaf_ports};
    if (needed <= ports) return;
    fabric.notes.push_back(fmt::format(
        "each {}{} switch would need {} ports, more than the {} of a leaf: it stands for a chassis or another tier without oversubscription",
        part.prefix(), tier, needed, ports));
  }

  void run() {
    part.first_leaf = static_cast<std::uint32_t>(fabric.leaves.size());
    part.first_group = static_cast<std::uint32_t>(fabric.groups.size());
    leaves();
    spines();
    std::size_t most = 0;
    for (std::size_t g = 0; g < group_leaves.size(); ++g)
      if (!group_spines[g].empty()) most = std::max(most, group_leaves[g].size());
    note_ports("spine", most);
    cores();
  }
};

}  // namespace

void add_network(Fabric& fabric, NetworkPart& part, const Nic& nic, const NetworkPlan& plan) {
  NetworkBuilder{.fabric = fabric, .part = part, .nic = nic, .plan = plan}.run();
}

}  // namespace stepcast::topology
