#include "topologies/generate.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "sim/base/text.hpp"
#include "topologies/explicit_network.hpp"
#include "topologies/host_fabric.hpp"
#include "topologies/network_choice.hpp"
#include "topologies/refusal.hpp"
#include "topologies/side_networks.hpp"

namespace stepcast::topology {

namespace {

// Whole domains: collectives of NCCL take them as machines alike.
void check_domain(const ClusterHardware& hardware, const scenario::Cluster& cluster, std::uint32_t nodes) {
  const std::int64_t domain = hardware.nvlink_domain;
  const std::string path = cluster.nvlink_domain ? "cluster.nvlink_domain" : "cluster.nodes";
  if (domain > 1 && hardware.node.interconnect != Interconnect::kNvswitch) {
    refuse(path, fmt::format("{} has no NVSwitch that several nodes could share", hardware.node.name), "1, or a node with interconnect: nvswitch",
           std::to_string(domain));
  }
  if (nodes <= domain || nodes % domain == 0) return;
  std::int64_t fits = domain;
  while (nodes % fits != 0) --fits;
  refuse(path, fmt::format("{} nodes do not fill NVLink domains of {}", nodes, domain),
         fmt::format("a multiple of {}, or at most {}: one domain", domain, domain), std::to_string(cluster.nvlink_domain ? domain : nodes),
         fmt::format("cluster.nvlink_domain: {} takes {} node{} of each rack", fits, fits, fits == 1 ? "" : "s"));
}

void check_nodes(const ClusterHardware& hardware, const scenario::Cluster& cluster) {
  if (hardware.gpus_per_node < 1 || hardware.gpus_per_node > hardware.node.gpus) {
    refuse("cluster.gpus_per_node", "more GPUs than the node has", fmt::format("1 to {} ({})", hardware.node.gpus, hardware.node.name),
           std::to_string(hardware.gpus_per_node));
  }
  // About 25 kB of links and routes a node: larger clusters would fill the machine's memory, not end in an answer.
  constexpr std::int64_t kMostNodes = 200'000;
  constexpr std::int64_t kMostGpus = 1'000'000;
  const std::int64_t most_nodes = std::min(kMostNodes, kMostGpus / hardware.gpus_per_node);
  if (cluster.nodes > most_nodes) {
    refuse("cluster.nodes", "more than one simulation can hold",
           fmt::format("at most {} nodes of {} GPUs", most_nodes, hardware.gpus_per_node), std::to_string(cluster.nodes));
  }
  if (hardware.node.interconnect != Interconnect::kPcie && hardware.gpus_per_node * hardware.nvlink_domain > 1 && !hardware.gpu.scale_up) {
    refuse("cluster.gpu", fmt::format("{} has no NVLink or xGMI, which {} joins its GPUs with", hardware.gpu.name, hardware.node.name),
           "a GPU with a scale_up rate", hardware.gpu.name);
  }
}

bool is_none(const scenario::Fabric& options) { return options.preset == "none" && !options.network; }

std::string shape_of(const scenario::Fabric& options, const Nic& nic) {
  return fmt::format("{}, {}", options.network ? "network as written" : options.preset, nic.name);
}

std::string name_of(const ClusterHardware& hardware, const scenario::Cluster& cluster, const scenario::Fabric& options) {
  if (cluster.nodes == 1) return hardware.node.name;
  std::string name = fmt::format("{} x {}", cluster.nodes, hardware.node.name);
  if (hardware.nvlink_domain >= cluster.nodes) name += ", one NVLink domain";
  if (hardware.nvlink_domain > 1 && hardware.nvlink_domain < cluster.nodes) name += fmt::format(", NVLink domains of {}", hardware.nvlink_domain);
  if (is_none(options)) return name;
  name += ", " + shape_of(options, hardware.nic);
  for (std::size_t i = 0; i < cluster.networks.size(); ++i)
    name += fmt::format("; {}: {}", cluster.networks[i].name, shape_of(cluster.networks[i].fabric, hardware.side_networks[i].nic));
  return name;
}

// A network as it will be built.
struct Wanted {
  std::string at;                   // key of its fabric
  const scenario::Fabric& options;
  const Nic& nic;
  HostCards cards;
  std::optional<NetworkPlan> plan;  // of a preset with tiers
};

Wanted want(std::string at, const scenario::Fabric& options, const Nic& nic, const Node& node, std::uint32_t nodes) {
  const std::int64_t cards = options.nics_per_node.value_or(node.nics);
  Wanted wanted{.at = std::move(at), .options = options, .nic = nic, .cards = {}, .plan = {}};
  wanted.cards.cards = nodes == 1 && cards == 0 ? 0 : positive(wanted.at + ".nics_per_node", cards);
  // A wrong preset is refused even where one node does not use it.
  if (!options.network && !is_direct(options.preset) && options.preset != "none" && wanted.cards.cards > 0)
    wanted.plan = plan_network(options, wanted.at, nic, wanted.cards.cards);
  if (nodes > 1 && wanted.plan) wanted.cards.ports = wanted.plan->planes;
  return wanted;
}

std::vector<std::string> names_of_nodes(const Fabric& fabric, const NetworkPart& part) {
  std::vector<std::string> names;
  for (const std::uint32_t node : part.nodes) {
    const std::string& device = fabric.devices[node * fabric.host.devices].name;
    names.push_back(device.substr(0, device.find('/')));
  }
  return names;
}

void build_network(Fabric& fabric, NetworkPart& part, const Wanted& wanted) {
  part.first_switch = static_cast<std::uint32_t>(fabric.devices.size());
  const auto nodes = static_cast<std::uint32_t>(part.nodes.size());
  const scenario::Fabric& options = wanted.options;
  if (options.network) {
    const ExplicitNetwork written = read_explicit(*options.network, wanted.at, names_of_nodes(fabric, part), part.nics);
    if (part.name.empty()) name_hosts(fabric, written.hosts);
    if (nodes > 1) add_graph_network(fabric, part, wanted.nic, written.graph);
  } else if (is_direct(options.preset) && part.nics > 0) {
    const GraphNetwork wired = plan_direct(options, wanted.at, nodes, part.nics);  // an impossible shape is refused for one node, too
    if (nodes > 1) add_graph_network(fabric, part, wanted.nic, wired);
  } else if (wanted.plan && nodes > 1) {
    const std::uint32_t planes = wanted.cards.ports;
    Nic port = wanted.nic;
    port.line_rate.value = port.line_rate.value / static_cast<double>(planes);
    add_network(fabric, part, port, *wanted.plan);
    if (planes > 1) fabric.notes.push_back(fmt::format("each network card has {} ports of {}, counted as NICs of their own", planes, human_bit_rate(port.line_rate.value)));
  }
  part.switches = static_cast<std::uint32_t>(fabric.devices.size()) - part.first_switch;
}

}  // namespace

Fabric build_fabric(const ClusterHardware& hardware, const scenario::Cluster& cluster) {
  const std::uint32_t nodes = positive("cluster.nodes", cluster.nodes);
  check_nodes(hardware, cluster);
  check_domain(hardware, cluster, nodes);
  const scenario::Fabric options = cluster.fabric.value_or(scenario::Fabric{.preset = "none"});
  const bool one_domain = hardware.nvlink_domain >= nodes;
  if (is_none(options) && (!one_domain || !cluster.networks.empty())) {
    refuse("cluster.fabric", fmt::format("{} nodes without a network", nodes), "a fabric preset, e.g. rail-clos", cluster.fabric ? "none" : "nothing");
  }
  std::vector<Wanted> wanted{want("cluster.fabric", options, hardware.nic, hardware.node, nodes)};
  for (std::size_t i = 0; i < cluster.networks.size(); ++i) {
    const scenario::Fabric& beside = cluster.networks[i].fabric;
    const std::string at = fmt::format("cluster.networks[{}].fabric", i);
    if (is_none(beside)) refuse(at + ".preset", "no network", "a fabric preset, e.g. clos", "none");
    wanted.push_back(want(at, beside, hardware.side_networks[i].nic, hardware.node, nodes));
  }

  Fabric fabric;
  fabric.name = name_of(hardware, cluster, options);
  const std::int64_t own_domain = hardware.node.nvlink_domain ? hardware.node.nvlink_domain->value : 1;
  if (nodes > 1 && hardware.nvlink_domain > own_domain) {
    fabric.notes.push_back(fmt::format("NVLink domains of {} nodes are larger than {} has ({}): every GPU at its full rate through one switch is assumed",
                                       hardware.nvlink_domain, hardware.node.name, own_domain));
  }
  fabric.peer_through_host = !hardware.node.peer_to_peer;
  fabric.networks = name_networks(cluster.networks, nodes);
  std::vector<HostCards> cards;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const NetworkCards own = hardware.cards(i);
    fabric.networks[i].through_host = !hardware.node.peer_to_peer || !own.gpudirect || own.nic.transport == Transport::kTcp;
    fabric.networks[i].through_cores = own.socket_rate.has_value();
    cards.push_back(wanted[i].cards);
  }
  add_hosts(fabric, hardware, nodes, cards);
  if (nodes > 1 && !is_none(options)) fabric.ports.resize(std::size_t{nodes} * fabric.nics_per_node());
  for (std::size_t i = 0; i < wanted.size(); ++i) build_network(fabric, fabric.networks[i], wanted[i]);
  return fabric;
}

}  // namespace stepcast::topology
