#include "topologies/host_fabric.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "sim/base/check.hpp"
#include "topologies/fabric_builder.hpp"

namespace stepcast::topology {

namespace {

std::string local_name(std::uint32_t node, std::string_view what, std::uint32_t index) {
  return fmt::format("node{}/{}{}", node, what, index);
}

// Share `item` of `items` falls to this one of `parts`: contiguous, even.
std::uint32_t part_of(std::uint32_t item, std::uint32_t items, std::uint32_t parts) {
  return static_cast<std::uint32_t>(std::uint64_t{item} * parts / items);
}

struct HostBuilder {
  Fabric& fabric;
  const ClusterHardware& hardware;
  std::span<const HostCards> cards;  // by network
  FabricBuilder build{fabric};
  std::uint32_t gpus = static_cast<std::uint32_t>(hardware.gpus_per_node);
  std::uint32_t physical = static_cast<std::uint32_t>(hardware.node.gpus);
  std::uint32_t sockets = static_cast<std::uint32_t>(hardware.node.sockets);
  std::vector<DeviceId> gpu_devices{};
  std::vector<DeviceId> roots{};
  std::vector<DeviceId> memories{};
  std::vector<DeviceId> switches{};

  std::vector<DeviceId> row(DeviceKind kind, std::string_view what, std::uint32_t count) {
    std::vector<DeviceId> ids;
    for (std::uint32_t i = 0; i < count; ++i) ids.push_back(build.device(kind, local_name(0, what, i), 0, i));
    return ids;
  }

  std::uint32_t socket_of(std::uint32_t physical_gpu) const { return part_of(physical_gpu, physical, sockets); }

  // The PCIe switch of a GPU slot, or the root complex where there are no switches.
  DeviceId attachment(std::uint32_t physical_gpu) const {
    const auto per_switch = static_cast<std::uint32_t>(hardware.node.gpus_per_pcie_switch);
    return per_switch == 0 ? roots[socket_of(physical_gpu)] : switches[physical_gpu / per_switch];
  }

  void scale_up() {
    const Node& node = hardware.node;
    if (node.interconnect == Interconnect::kPcie || gpus * fabric.nodes_per_domain < 2) return;
    SIM_CHECK(hardware.gpu.scale_up && node.scale_up_efficiency && node.scale_up_latency, hardware.gpu.name, node.name);
    const LinkSpec whole{LinkKind::kNvlink, hardware.gpu.scale_up->value, node.scale_up_efficiency->value, node.scale_up_latency->value};
    if (node.interconnect == Interconnect::kNvswitch) {
      LinkSpec half = whole;  // one way through the switch is two links
      half.latency = Duration::picoseconds(whole.latency.count() / 2);
      if (fabric.nodes_per_domain > 1) {
        scale_up_across(half);
        return;
      }
      const DeviceId hub = build.device(DeviceKind::kNvswitch, local_name(0, "nvswitch", 0), 0, 0);
      for (const DeviceId gpu : gpu_devices) build.duplex(gpu, hub, half);
      return;
    }
    std::vector<MeshLink> mesh = node.mesh;
    if (mesh.empty()) {
      for (std::int64_t a = 0; a < node.gpus; ++a)
        for (std::int64_t b = a + 1; b < node.gpus; ++b) mesh.push_back({a, b, 1});
    }
    std::vector<std::int64_t> degree(physical, 0);
    for (const MeshLink& pair : mesh) {
      degree[static_cast<std::size_t>(pair.a)] += pair.links;
      degree[static_cast<std::size_t>(pair.b)] += pair.links;
    }
    LinkSpec one = whole;
    one.rate = whole.rate / static_cast<double>(*std::max_element(degree.begin(), degree.end()));
    for (const MeshLink& pair : mesh) {
      if (pair.a >= hardware.gpus_per_node || pair.b >= hardware.gpus_per_node) continue;
      build.duplex(gpu_devices[static_cast<std::size_t>(pair.a)], gpu_devices[static_cast<std::size_t>(pair.b)], one,
                   static_cast<int>(pair.links));
    }
  }

  // The domain's switch follows the hosts: its id is known when the size of a host is (join_domain).
  void scale_up_across(const LinkSpec& half) {
    constexpr DeviceId kLater{0U};
    for (const DeviceId gpu : gpu_devices) {
      fabric.host.to_domain.push_back(build.link(gpu, kLater, half));
      fabric.host.from_domain.push_back(build.link(kLater, gpu, half));
    }
  }

  void join_domain() {
    const HostShape& host = fabric.host;
    const DeviceId hub{fabric.nodes * host.devices};
    const auto link = [&](std::uint32_t bundle) -> Link& { return fabric.links[fabric.bundles[bundle].links.front().index()]; };
    for (const std::uint32_t bundle : host.to_domain) link(bundle).to = hub;
    for (const std::uint32_t bundle : host.from_domain) link(bundle).from = hub;
  }

  void pcie_and_memory() {
    const Node& node = hardware.node;
    const LinkSpec pcie{LinkKind::kPcie, node.pcie_bandwidth.value, 1.0, node.pcie_latency.value};
    const LinkSpec uplink{LinkKind::kPcie, node.pcie_uplink ? node.pcie_uplink->value : pcie.rate, 1.0, pcie.latency};
    const LinkSpec gpu_link = node.gpu_host_link
        ? LinkSpec{LinkKind::kC2c, node.gpu_host_link->value, 1.0, node.pcie_latency.value} : pcie;
    // Channels of a socket serve it alone; the bus to memory carries no latency of its own (it is in PCIe's).
    const LinkSpec memory{LinkKind::kMemory, node.dram_bandwidth.value / static_cast<double>(sockets), 1.0, Duration{}};
    const auto per_switch = static_cast<std::uint32_t>(node.gpus_per_pcie_switch);
    if (per_switch > 0) switches = row(DeviceKind::kPcieSwitch, "pcie", (physical + per_switch - 1) / per_switch);
    roots = row(DeviceKind::kRootComplex, "root", sockets);
    memories = row(DeviceKind::kHostMemory, "memory", sockets);
    for (std::uint32_t g = 0; g < gpus; ++g) build.duplex(gpu_devices[g], attachment(g), gpu_link);
    for (std::uint32_t s = 0; s < switches.size(); ++s) build.duplex(switches[s], roots[socket_of(s * per_switch)], uplink);
    for (std::uint32_t s = 0; s < sockets; ++s) build.duplex(roots[s], memories[s], memory);
    if (!node.socket_link) return;
    const LinkSpec bus{LinkKind::kSocket, node.socket_link->value, 1.0, node.socket_latency ? node.socket_latency->value : Duration{}};
    for (std::uint32_t a = 0; a < sockets; ++a)
      for (std::uint32_t b = a + 1; b < sockets; ++b) build.duplex(roots[a], roots[b], bus);
  }

  void nics_beside_gpus(NetworkPart& network, const HostCards& card) {
    const LinkSpec pcie{LinkKind::kPcie, hardware.node.pcie_bandwidth.value / static_cast<double>(card.ports), 1.0, hardware.node.pcie_latency.value};
    HostShape& host = fabric.host;
    network.first_nic = static_cast<std::uint32_t>(host.nics.size());
    network.nics = card.cards * card.ports;
    for (std::uint32_t j = 0; j < network.nics; ++j) {
      const std::string port = card.ports > 1 ? fmt::format("nic{}p{}", j / card.ports, j % card.ports) : fmt::format("nic{}", j);
      const DeviceId device = build.device(DeviceKind::kNic, "node0/" + network.prefix() + port, 0, network.first_nic + j);
      const std::uint32_t slot = part_of(j, network.nics, physical);
      build.duplex(device, attachment(slot), pcie);
      host.nics.push_back(device.value());
      host.gpu_of_nic.push_back(slot < gpus ? std::optional{slot} : std::nullopt);
    }
    for (std::uint32_t g = 0; g < gpus && network.nics > 0; ++g) {
      const std::uint32_t first = part_of(g, physical, network.nics);
      const std::uint32_t last = std::max(first + 1, part_of(g + 1, physical, network.nics));
      std::vector<std::uint32_t>& own = network.nics_of_gpu.emplace_back(last - first);
      std::iota(own.begin(), own.end(), network.first_nic + first);
    }
  }

  // Data that go through sockets pass the cores: read from memory, written back.
  void cores() {
    Bandwidth rate;  // networks share the cores: those of the one that may use most
    for (std::size_t i = 0; i < cards.size(); ++i)
      if (const auto own = hardware.cards(i).socket_rate; own && cards[i].cards > 0) rate = std::max(rate, *own);
    if (rate == Bandwidth{}) return;
    const LinkSpec moves{LinkKind::kCpu, rate / static_cast<double>(sockets), 1.0, Duration{}};
    const std::vector<DeviceId> cpus = row(DeviceKind::kCpu, "cpu", sockets);
    for (std::uint32_t s = 0; s < sockets; ++s) build.duplex(roots[s], cpus[s], moves);
    for (std::uint32_t g = 0; g < gpus; ++g) fabric.host.cpu_of_gpu.push_back(cpus[socket_of(g)].value());
  }

  void run() {
    gpu_devices = row(DeviceKind::kGpu, "gpu", gpus);
    scale_up();
    pcie_and_memory();
    for (std::size_t i = 0; i < cards.size(); ++i) nics_beside_gpus(fabric.networks[i], cards[i]);
    cores();
    HostShape& host = fabric.host;
    host.physical_gpus = physical;
    for (std::uint32_t g = 0; g < gpus; ++g) {
      host.gpus.push_back(gpu_devices[g].value());
      host.memory_of_gpu.push_back(memories[socket_of(g)].value());
    }
    host.devices = static_cast<std::uint32_t>(fabric.devices.size());
    host.links = static_cast<std::uint32_t>(fabric.links.size());
    host.bundles = static_cast<std::uint32_t>(fabric.bundles.size());
    join_domain();
  }
};

// Appends a copy of host 0 as host `node`.
void copy_host(Fabric& fabric, std::uint32_t node) {
  const HostShape& host = fabric.host;
  const std::uint32_t first_device = node * host.devices;
  const std::uint32_t first_bundle = node * host.bundles;
  const std::string prefix = fmt::format("node{}", node);
  constexpr std::size_t kOldPrefix = 5;  // "node0"
  for (std::uint32_t d = 0; d < host.devices; ++d) {
    const Device& original = fabric.devices[d];
    fabric.devices.push_back({original.kind, prefix + original.name.substr(kOldPrefix), node, original.index});
  }
  const auto copy_of = [&](DeviceId original) {
    const bool is_hub = original.value() >= host.devices;
    return DeviceId{original.value() + (is_hub ? node / fabric.nodes_per_domain : first_device)};
  };
  for (std::uint32_t l = 0; l < host.links; ++l) {
    Link link = fabric.links[l];
    link.from = copy_of(link.from);
    link.to = copy_of(link.to);
    link.bundle += first_bundle;
    fabric.links.push_back(link);
  }
  for (std::uint32_t b = 0; b < host.bundles; ++b) {
    Bundle bundle = fabric.bundles[b];
    for (LinkId& id : bundle.links) id = LinkId{id.value() + node * host.links};
    fabric.bundles.push_back(std::move(bundle));
  }
}

}  // namespace

void add_hosts(Fabric& fabric, const ClusterHardware& hardware, std::uint32_t nodes, std::span<const HostCards> cards) {
  fabric.nodes = nodes;
  fabric.nodes_per_domain = std::min(nodes, static_cast<std::uint32_t>(hardware.nvlink_domain));
  HostBuilder{.fabric = fabric, .hardware = hardware, .cards = cards}.run();
  fabric.gpus_per_node = static_cast<std::uint32_t>(hardware.gpus_per_node);
  fabric.devices.reserve(std::size_t{nodes} * fabric.host.devices);
  fabric.links.reserve(std::size_t{nodes} * fabric.host.links);
  fabric.bundles.reserve(std::size_t{nodes} * fabric.host.bundles);
  for (std::uint32_t n = 1; n < nodes; ++n) copy_host(fabric, n);
  for (std::uint32_t n = 0; n < nodes; ++n)
    for (const std::uint32_t gpu : fabric.host.gpus) fabric.gpus.emplace_back(n * fabric.host.devices + gpu);
  if (!fabric.host.to_domain.empty()) {
    for (std::uint32_t first = 0, d = 0; first < nodes; first += fabric.nodes_per_domain, ++d)
      fabric.devices.push_back({DeviceKind::kNvswitch, fmt::format("domain{}/nvswitch", d), first, d});
  }
  fabric.first_switch = static_cast<std::uint32_t>(fabric.devices.size());
}

void name_hosts(Fabric& fabric, std::span<const std::string> names) {
  for (std::uint32_t d = 0; d < fabric.nodes * fabric.host.devices; ++d) {
    std::string& name = fabric.devices[d].name;
    name = names[fabric.devices[d].node] + name.substr(name.find('/'));
  }
}

}  // namespace stepcast::topology
