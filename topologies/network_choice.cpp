#include "topologies/network_choice.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "sim/base/text.hpp"
#include "topologies/direct_networks.hpp"
#include "topologies/refusal.hpp"

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

const Preset& find_preset(const std::string& at, const std::string& name) {
  std::vector<std::string> words{"none"};
  for (const Preset& preset : kPresets) {
    if (preset.name == name) return preset;
    words.emplace_back(preset.name);
  }
  words.insert(words.end(), kDirect.begin(), kDirect.end());
  const std::optional<std::string> near = nearest_word(name, words);
  refuse(at + ".preset", "unknown fabric", one_of(words), name, near ? fmt::format("did you mean '{}'?", *near) : "");
}

void check_ratio(const std::string& key, double value) {
  if (!(value > 0.0 && value <= 1000.0)) refuse(key, "out of range", "above 0, at most 1000", fmt::format("{}", value));
}

}  // namespace

NetworkPlan plan_network(const scenario::Fabric& options, const std::string& at, const Nic& nic, std::uint32_t nics) {
  const Preset& preset = find_preset(at, options.preset);
  check_ratio(at + ".oversubscription", options.oversubscription);
  const bool racks = preset.name == "meta-rack";
  const double core_oversubscription = options.core_oversubscription.value_or(racks ? kZoneOversubscription : 1.0);
  check_ratio(at + ".core_oversubscription", core_oversubscription);
  NetworkPlan plan{.by_rail = preset.by_rail, .join_rails = preset.join_rails, .cores = preset.cores, .planes = preset.planes,
                   .oversubscription = options.oversubscription, .core_oversubscription = core_oversubscription};
  // Ports of half the rate are twice as many on a switch.
  plan.leaf_ports = positive(at + ".leaf_ports", options.leaf_ports.value_or(racks ? kRackPorts : nic.leaf_ports.value * preset.planes));
  if (!plan.by_rail && plan.leaf_ports < nics) {
    refuse(at + ".leaf_ports", "a leaf cannot take the NICs of one node",
           fmt::format("at least {} (NICs of a node), or a rail fabric", nics), std::to_string(plan.leaf_ports));
  }
  // Default pod of three tiers: as many leaves as a leaf has down-ports, so that spines are as large as leaves.
  const std::uint32_t full_pod = plan.by_rail ? plan.leaf_ports : std::max(1U, plan.leaf_ports / nics) * plan.leaf_ports;
  plan.nodes_per_pod = racks ? std::max(1U, plan.leaf_ports / nics) * kRacksOfZone : full_pod;
  if (options.nodes_per_pod) {
    if (!plan.by_rail && !plan.cores) {
      refuse(at + ".nodes_per_pod", fmt::format("{} has no pods", options.preset), "a rail or three-tier preset, or no nodes_per_pod",
             options.preset);
    }
    plan.nodes_per_pod = positive(at + ".nodes_per_pod", *options.nodes_per_pod);
    if (plan.by_rail && plan.nodes_per_pod > plan.leaf_ports) {
      refuse(at + ".nodes_per_pod", "more nodes than a rail's leaf has ports",
             fmt::format("at most {} (leaf_ports)", plan.leaf_ports), std::to_string(plan.nodes_per_pod));
    }
  }
  return plan;
}

bool is_direct(const std::string& preset) { return std::find(kDirect.begin(), kDirect.end(), preset) != kDirect.end(); }

GraphNetwork plan_direct(const scenario::Fabric& options, const std::string& at, std::uint32_t nodes, std::uint32_t nics) {
  const auto per_switch = positive(at + ".nodes_per_switch", options.nodes_per_switch.value_or(1));
  const auto neighbour_links = positive(at + ".neighbour_links", options.neighbour_links.value_or(std::int64_t{per_switch} * nics));
  if (options.preset == "direct") {
    if (nodes == 1) return {};
    if (nics % (nodes - 1) != 0) {
      refuse(at + ".nics_per_node", "cards do not join every pair of nodes alike", fmt::format("a multiple of {} (the other nodes)", nodes - 1),
             std::to_string(nics));
    }
    return make_direct(nodes, nics);
  }
  if (options.preset == "dragonfly") {
    if (!options.switches_per_group) refuse(at + ".switches_per_group", "missing key", "switches in a group of the dragonfly", "nothing");
    const auto in_group = positive(at + ".switches_per_group", *options.switches_per_group);
    const std::uint64_t group = std::uint64_t{per_switch} * in_group;
    if (nodes % group != 0) {
      refuse(at == "cluster.fabric" ? "cluster.nodes" : at, "no whole number of groups", fmt::format("a multiple of {} = nodes_per_switch {} x switches_per_group {}", group, per_switch, in_group),
             std::to_string(nodes));
    }
    const auto others = static_cast<std::uint32_t>(std::max<std::uint64_t>(1, nodes / group - 1));
    const auto own = static_cast<std::int64_t>((group * nics + others - 1) / others);
    return make_dragonfly({.nodes_per_switch = per_switch, .switches_per_group = in_group, .neighbour_links = neighbour_links,
                           .global_links = positive(at + ".global_links", options.global_links.value_or(own))}, nodes, nics);
  }
  if (options.shape.empty()) refuse(at + ".shape", "missing key", "switches in each dimension, such as [4, 4]", "nothing");
  std::vector<std::uint32_t> shape;
  std::uint64_t points = 1;
  for (const std::int64_t size : options.shape) {
    shape.push_back(positive(at + ".shape", size));
    points = std::min<std::uint64_t>(points * shape.back(), std::uint64_t{1} << 40U);
  }
  if (points * per_switch != nodes) {
    refuse(at + ".shape", "not the number of nodes", fmt::format("{} = {}", nodes, at == "cluster.fabric" ? "cluster.nodes" : "nodes of this network"), fmt::format("{} switches x {} nodes_per_switch", points, per_switch));
  }
  return make_grid(shape, {.wraps = options.preset == "torus", .nodes_per_switch = per_switch, .neighbour_links = neighbour_links}, nodes, nics);
}

}  // namespace stepcast::topology
