#include "topologies/generate.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "sim/base/diagnostic.hpp"
#include "sim/base/text.hpp"
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
};

constexpr std::array kPresets{
    Preset{"clos", false, true, false},      Preset{"clos-3tier", false, true, true},
    Preset{"rail-clos", true, true, false},  Preset{"rail-clos-3tier", true, true, true},
    Preset{"rail-only", true, false, false},
};

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
  check_ratio("cluster.fabric.core_oversubscription", options.core_oversubscription);
  NetworkPlan plan{.by_rail = preset.by_rail, .join_rails = preset.join_rails, .cores = preset.cores,
                   .oversubscription = options.oversubscription, .core_oversubscription = options.core_oversubscription};
  plan.leaf_ports = positive("cluster.fabric.leaf_ports", options.leaf_ports.value_or(nic.leaf_ports.value));
  if (!plan.by_rail && plan.leaf_ports < nics) {
    refuse("cluster.fabric.leaf_ports", "a leaf cannot take the NICs of one node",
           fmt::format("at least {} (NICs of a node), or a rail fabric", nics), std::to_string(plan.leaf_ports));
  }
  // Default pod of three tiers: as many leaves as a leaf has down-ports, so that spines are as large as leaves.
  const std::uint32_t full_pod = plan.by_rail ? plan.leaf_ports : std::max(1U, plan.leaf_ports / nics) * plan.leaf_ports;
  plan.nodes_per_pod = full_pod;
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
  if (hardware.node.interconnect != Interconnect::kPcie && hardware.gpus_per_node > 1 && !hardware.gpu.scale_up) {
    refuse("cluster.gpu", fmt::format("{} has no NVLink or xGMI, which {} joins its GPUs with", hardware.gpu.name, hardware.node.name),
           "a GPU with a scale_up rate", hardware.gpu.name);
  }
  if (nodes > 1 && (!cluster.fabric || (cluster.fabric->preset == "none" && !cluster.fabric->network))) {
    refuse("cluster.fabric", fmt::format("{} nodes without a network", nodes), "a fabric preset, e.g. rail-clos", cluster.fabric ? "none" : "nothing");
  }
  const scenario::Fabric options = cluster.fabric.value_or(scenario::Fabric{.preset = "none"});
  const std::int64_t wanted_nics = options.nics_per_node.value_or(hardware.node.nics);
  const std::uint32_t nics = nodes == 1 && wanted_nics == 0 ? 0 : positive("cluster.fabric.nics_per_node", wanted_nics);
  // A wrong preset is refused even where one node does not use it.
  const std::optional<NetworkPlan> plan =
      options.network || options.preset == "none" || nics == 0 ? std::nullopt : std::optional{plan_network(options, hardware.nic, nics)};

  Fabric fabric;
  fabric.name = nodes == 1 ? hardware.node.name
                           : fmt::format("{} x {}, {}, {}", nodes, hardware.node.name, options.network ? "network as written" : options.preset, hardware.nic.name);
  fabric.peer_through_host = !hardware.node.peer_to_peer;
  fabric.network_through_host = !hardware.node.peer_to_peer || hardware.nic.transport == Transport::kTcp;
  add_hosts(fabric, hardware, nodes, nics);
  if (options.network) {
    const ExplicitNetwork written = read_explicit(*options.network, nodes, nics);
    name_hosts(fabric, written.hosts);
    if (nodes > 1) add_graph_network(fabric, hardware.nic, written.graph);
  } else if (nodes > 1) {
    add_network(fabric, hardware.nic, *plan);
  }
  return fabric;
}

}  // namespace stepcast::topology
