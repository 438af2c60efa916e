#include "topologies/generate.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "sim/base/diagnostic.hpp"
#include "sim/base/text.hpp"
#include "topologies/direct_networks.hpp"
#include "topologies/explicit_network.hpp"
#include "topologies/graph_network.hpp"
#include "topologies/host_fabric.hpp"
#include "topologies/network_fabric.hpp"

namespace stepcast::topology {

namespace {

struct Preset {
  std::string_view name;
  bool by_rail;
  bool join_rails;
  bool cores;
  std::uint32_t planes = 1;
};

constexpr std::array kPresets{
    Preset{"clos", false, true, false},      Preset{"clos-3tier", false, true, true},
    Preset{"rail-clos", true, true, false},  Preset{"rail-clos-3tier", true, true, true},
    Preset{"rail-only", true, false, false}, Preset{"dual-plane", true, true, false, 2},
    Preset{"meta-rack", false, true, true},
};

constexpr std::array<std::string_view, 4> kDirect{"torus", "mesh", "dragonfly", "direct"};

// Racks of Meta's clusters: two hosts of eight GPUs on a switch; zones of 192 racks (3072 GPUs); 1:7 between
// zones (Gangidi et al., "RDMA over Ethernet for distributed AI training at Meta scale", SIGCOMM 2024, section 3).
constexpr std::int64_t kRackPorts = 16;
constexpr std::uint32_t kRacksOfZone = 192;
constexpr double kZoneOversubscription = 7.0;

[[noreturn]] void refuse(std::string path, std::string problem, std::string expected, std::string got, std::string hint = {}) {
  throw UserError{Diagnostic{.where = {}, .path = std::move(path), .problem = std::move(problem), .expected = std::move(expected),
                             .got = std::move(got), .hint = std::move(hint)}};
}

const Preset& find_preset(const std::string& name) {
  std::vector<std::string> words{"none"};
  for (const Preset& preset : kPresets) {
    if (preset.name == name) return preset;
    words.emplace_back(preset.name);
  }
  words.insert(words.end(), kDirect.begin(), kDirect.end());
  const std::optional<std::string> near = nearest_word(name, words);
  refuse("cluster.fabric.preset", "unknown fabric", one_of(words), name, near ? fmt::format("did you mean '{}'?", *near) : "");
}

std::uint32_t positive(const char* key, std::int64_t value) {
  constexpr std::int64_t kMost = 1'000'000;  // ports, nodes, NICs: far beyond any machine, well inside 32 bits
  if (value < 1 || value > kMost) refuse(key, "out of range", fmt::format("1 to {}", kMost), std::to_string(value));
  return static_cast<std::uint32_t>(value);
}

void check_ratio(const char* key, double value) {
  if (!(value > 0.0 && value <= 1000.0)) refuse(key, "out of range", "above 0, at most 1000", fmt::format("{}", value));
}

NetworkPlan plan_network(const scenario::Fabric& options, const Nic& nic, std::uint32_t nics) {
  const Preset& preset = find_preset(options.preset);
  check_ratio("cluster.fabric.oversubscription", options.oversubscription);
  const bool racks = preset.name == "meta-rack";
  const double core_oversubscription = options.core_oversubscription.value_or(racks ? kZoneOversubscription : 1.0);
  check_ratio("cluster.fabric.core_oversubscription", core_oversubscription);
  NetworkPlan plan{.by_rail = preset.by_rail, .join_rails = preset.join_rails, .cores = preset.cores, .planes = preset.planes,
                   .oversubscription = options.oversubscription, .core_oversubscription = core_oversubscription};
  // Ports of half the rate are twice as many on a switch.
  plan.leaf_ports = positive("cluster.fabric.leaf_ports", options.leaf_ports.value_or(racks ? kRackPorts : nic.leaf_ports.value * preset.planes));
  if (!plan.by_rail && plan.leaf_ports < nics) {
    refuse("cluster.fabric.leaf_ports", "a leaf cannot take the NICs of one node",
           fmt::format("at least {} (NICs of a node), or a rail fabric", nics), std::to_string(plan.leaf_ports));
  }
  // Default pod of three tiers: as many leaves as a leaf has down-ports, so that spines are as large as leaves.
  const std::uint32_t full_pod = plan.by_rail ? plan.leaf_ports : std::max(1U, plan.leaf_ports / nics) * plan.leaf_ports;
  plan.nodes_per_pod = racks ? std::max(1U, plan.leaf_ports / nics) * kRacksOfZone : full_pod;
  if (options.nodes_per_pod) {
    if (!plan.by_rail && !plan.cores) {
      refuse("cluster.fabric.nodes_per_pod", fmt::format("{} has no pods", options.preset), "a rail or three-tier preset, or no nodes_per_pod",
             options.preset);
    }
    plan.nodes_per_pod = positive("cluster.fabric.nodes_per_pod", *options.nodes_per_pod);
    if (plan.by_rail && plan.nodes_per_pod > plan.leaf_ports) {
      refuse("cluster.fabric.nodes_per_pod", "more nodes than a rail's leaf has ports",
             fmt::format("at most {} (leaf_ports)", plan.leaf_ports), std::to_string(plan.nodes_per_pod));
    }
  }
  return plan;
}

bool is_direct(const std::string& preset) { return std::find(kDirect.begin(), kDirect.end(), preset) != kDirect.end(); }

GraphNetwork plan_direct(const scenario::Fabric& options, std::uint32_t nodes, std::uint32_t nics) {
  const auto per_switch = positive("cluster.fabric.nodes_per_switch", options.nodes_per_switch.value_or(1));
  const auto neighbour_links = positive("cluster.fabric.neighbour_links", options.neighbour_links.value_or(std::int64_t{per_switch} * nics));
  if (options.preset == "direct") {
    if (nodes == 1) return {};
    if (nics % (nodes - 1) != 0) {
      refuse("cluster.fabric.nics_per_node", "cards do not join every pair of nodes alike", fmt::format("a multiple of {} (the other nodes)", nodes - 1),
             std::to_string(nics));
    }
    return make_direct(nodes, nics);
  }
  if (options.preset == "dragonfly") {
    if (!options.switches_per_group) refuse("cluster.fabric.switches_per_group", "missing key", "switches in a group of the dragonfly", "nothing");
    const auto in_group = positive("cluster.fabric.switches_per_group", *options.switches_per_group);
    const std::uint64_t group = std::uint64_t{per_switch} * in_group;
    if (nodes % group != 0) {
      refuse("cluster.nodes", "no whole number of groups", fmt::format("a multiple of {} = nodes_per_switch {} x switches_per_group {}", group, per_switch, in_group),
             std::to_string(nodes));
    }
    const auto others = static_cast<std::uint32_t>(std::max<std::uint64_t>(1, nodes / group - 1));
    const auto own = static_cast<std::int64_t>((group * nics + others - 1) / others);
    return make_dragonfly({.nodes_per_switch = per_switch, .switches_per_group = in_group, .neighbour_links = neighbour_links,
                           .global_links = positive("cluster.fabric.global_links", options.global_links.value_or(own))}, nodes, nics);
  }
  if (options.shape.empty()) refuse("cluster.fabric.shape", "missing key", "switches in each dimension, such as [4, 4]", "nothing");
  std::vector<std::uint32_t> shape;
  std::uint64_t points = 1;
  for (const std::int64_t size : options.shape) {
    shape.push_back(positive("cluster.fabric.shape", size));
    points = std::min<std::uint64_t>(points * shape.back(), std::uint64_t{1} << 40U);
  }
  if (points * per_switch != nodes) {
    refuse("cluster.fabric.shape", "not the number of nodes", fmt::format("{} = cluster.nodes", nodes), fmt::format("{} switches x {} nodes_per_switch", points, per_switch));
  }
  return make_grid(shape, {.wraps = options.preset == "torus", .nodes_per_switch = per_switch, .neighbour_links = neighbour_links}, nodes, nics);
}

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

std::string name_of(const ClusterHardware& hardware, const scenario::Fabric& options, std::uint32_t nodes) {
  if (nodes == 1) return hardware.node.name;
  std::string name = fmt::format("{} x {}", nodes, hardware.node.name);
  if (hardware.nvlink_domain >= nodes) name += ", one NVLink domain";
  if (hardware.nvlink_domain > 1 && hardware.nvlink_domain < nodes) name += fmt::format(", NVLink domains of {}", hardware.nvlink_domain);
  if (options.preset == "none" && !options.network) return name;
  return name + fmt::format(", {}, {}", options.network ? "network as written" : options.preset, hardware.nic.name);
}

}  // namespace

Fabric build_fabric(const ClusterHardware& hardware, const scenario::Cluster& cluster) {
  const std::uint32_t nodes = positive("cluster.nodes", cluster.nodes);
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
           fmt::format("at most {} nodes of {} GPUs", most_nodes, hardware.gpus_per_node), std::to_string(nodes));
  }
  if (hardware.node.interconnect != Interconnect::kPcie && hardware.gpus_per_node * hardware.nvlink_domain > 1 && !hardware.gpu.scale_up) {
    refuse("cluster.gpu", fmt::format("{} has no NVLink or xGMI, which {} joins its GPUs with", hardware.gpu.name, hardware.node.name),
           "a GPU with a scale_up rate", hardware.gpu.name);
  }
  check_domain(hardware, cluster, nodes);
  const bool one_domain = hardware.nvlink_domain >= nodes;
  if (!one_domain && (!cluster.fabric || (cluster.fabric->preset == "none" && !cluster.fabric->network))) {
    refuse("cluster.fabric", fmt::format("{} nodes without a network", nodes), "a fabric preset, e.g. rail-clos", cluster.fabric ? "none" : "nothing");
  }
  const scenario::Fabric options = cluster.fabric.value_or(scenario::Fabric{.preset = "none"});
  const std::int64_t wanted_nics = options.nics_per_node.value_or(hardware.node.nics);
  const std::uint32_t nics = nodes == 1 && wanted_nics == 0 ? 0 : positive("cluster.fabric.nics_per_node", wanted_nics);
  // A wrong preset is refused even where one node does not use it.
  const std::optional<NetworkPlan> plan =
      options.network || is_direct(options.preset) || options.preset == "none" || nics == 0 ? std::nullopt : std::optional{plan_network(options, hardware.nic, nics)};

  Fabric fabric;
  fabric.name = name_of(hardware, options, nodes);
  const std::int64_t own_domain = hardware.node.nvlink_domain ? hardware.node.nvlink_domain->value : 1;
  if (nodes > 1 && hardware.nvlink_domain > own_domain) {
    fabric.notes.push_back(fmt::format("NVLink domains of {} nodes are larger than {} has ({}): every GPU at its full rate through one switch is assumed",
                                       hardware.nvlink_domain, hardware.node.name, own_domain));
  }
  fabric.peer_through_host = !hardware.node.peer_to_peer;
  fabric.network_through_host = !hardware.node.peer_to_peer || !hardware.gpudirect || hardware.nic.transport == Transport::kTcp;
  const std::uint32_t planes = nodes > 1 && plan ? plan->planes : 1;
  add_hosts(fabric, hardware, nodes, nics, planes);
  if (options.network) {
    const ExplicitNetwork written = read_explicit(*options.network, nodes, nics);
    name_hosts(fabric, written.hosts);
    if (nodes > 1) add_graph_network(fabric, hardware.nic, written.graph);
  } else if (is_direct(options.preset) && nics > 0) {
    const GraphNetwork wired = plan_direct(options, nodes, nics);  // an impossible shape is refused for one node, too
    if (nodes > 1) add_graph_network(fabric, hardware.nic, wired);
  } else if (plan && nodes > 1) {
    Nic port = hardware.nic;
    port.line_rate.value = port.line_rate.value / static_cast<double>(planes);
    add_network(fabric, port, *plan);
    if (planes > 1) fabric.notes.push_back(fmt::format("each network card has {} ports of {}, counted as NICs of their own", planes, human_bit_rate(port.line_rate.value)));
  }
  return fabric;
}

}  // namespace stepcast::topology
