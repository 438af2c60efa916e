#include "app/scenario/routing_choice.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "app/scenario/placed.hpp"
#include "sim/base/text.hpp"

namespace stepcast::app {
namespace {

// The scenario's words and the model's are the same lists in the same order.
template <class To, class From>
To same_place(From word) {
  return static_cast<To>(word);
}
static_assert(static_cast<int>(scenario::RoutingPolicy::kSpray) == static_cast<int>(network::PathPolicy::kSpray));
static_assert(static_cast<int>(scenario::RoutingPolicy::kPlanned) == static_cast<int>(network::PathPolicy::kPlanned));
static_assert(static_cast<int>(scenario::SwitchHash::kXor4) == static_cast<int>(network::HashFunction::kXor4));
static_assert(static_cast<int>(scenario::SwitchHash::kCrc32Low) == static_cast<int>(network::HashFunction::kCrc32Low));
static_assert(static_cast<int>(scenario::SourcePortRule::kFixed) == static_cast<int>(network::SourcePort::kFixed));
static_assert(static_cast<int>(scenario::SourcePortRule::kQp) == static_cast<int>(network::SourcePort::kQp));
static_assert(static_cast<int>(scenario::QpUse::kRoundRobin) == static_cast<int>(network::QpMode::kRoundRobin));

template <class E>
std::string word_of(E value) {
  for (const auto& [text, member] : enum_words(E{}))
    if (member == value) return text;
  return "?";
}

bool hashes(scenario::RoutingPolicy policy) {
  return policy == scenario::RoutingPolicy::kEcmp || policy == scenario::RoutingPolicy::kEEcmp;
}

bool is_linear(scenario::SwitchHash hash) { return hash != scenario::SwitchHash::kIdeal; }

}  // namespace

run::PathRules pick_paths(const scenario::Loaded& loaded, const topology::Fabric& fabric) {
  const std::optional<scenario::Fabric>& options = loaded.scenario.cluster.fabric;
  if (!options) return {};
  const scenario::Routing& routing = options->routing;
  run::PathRules rules;
  rules.policy = same_place<network::PathPolicy>(routing.policy);
  rules.hash = same_place<network::HashFunction>(routing.hash);
  rules.seed_per_switch = routing.seed == scenario::SwitchSeed::kPerSwitch;
  rules.tier_offset = static_cast<int>(routing.tier_offset);
  rules.source_port = same_place<network::SourcePort>(routing.source_port);
  rules.qps = static_cast<std::uint32_t>(routing.qps);
  rules.qp_mode = same_place<network::QpMode>(routing.qp_mode);
  rules.message = routing.message;
  rules.flowlet_gap = routing.flowlet_gap;
  rules.seed = static_cast<std::uint64_t>(loaded.scenario.seed);
  rules.changes = placed(loaded.where, [&] { return topology::find_failures(fabric, options->failures); });
  return rules;
}

bool routing_given(const scenario::Cluster& cluster) {
  return cluster.nodes > 1 && cluster.fabric && (cluster.fabric->routing != scenario::Routing{} || !cluster.fabric->failures.empty());
}

std::string routing_text(const scenario::Cluster& cluster) {
  if (cluster.nodes < 2 || !cluster.fabric) return "";
  const scenario::Routing& routing = cluster.fabric->routing;
  std::string text = word_of(routing.policy);
  const bool chooses = !network::spreads(same_place<network::PathPolicy>(routing.policy));
  std::vector<std::string> parts;
  if (chooses) {
    parts.push_back(routing.qps == 1 ? "1 QP a connection" : fmt::format("{} QPs a connection ({})", routing.qps, word_of(routing.qp_mode)));
  }
  if (hashes(routing.policy)) {
    parts.push_back(fmt::format("hash {}", word_of(routing.hash)));
    parts.emplace_back(routing.seed == scenario::SwitchSeed::kSame ? "the same seed everywhere" : "a seed per switch");
    if (routing.tier_offset > 0) parts.push_back(fmt::format("{} bits further a tier", routing.tier_offset));
    parts.push_back(fmt::format("source ports {}", word_of(routing.source_port)));
  }
  if (routing.policy == scenario::RoutingPolicy::kFlowlet) parts.push_back(fmt::format("gap {}", human_duration(routing.flowlet_gap)));
  if (!chooses) parts.emplace_back("every flow evenly over all shortest paths");
  if (const std::size_t count = cluster.fabric->failures.size(); count > 0) {
    parts.push_back(fmt::format("{} failure{}", count, count == 1 ? "" : "s"));
  }
  return text + ": " + join(parts, ", ");
}

std::vector<std::string> routing_notes(const scenario::Cluster& cluster, const topology::Fabric& fabric) {
  std::vector<std::string> notes;
  if (!routing_given(cluster)) return notes;
  const scenario::Routing& routing = cluster.fabric->routing;
  const auto tiers = [&](topology::DeviceKind kind) {
    return std::any_of(fabric.devices.begin(), fabric.devices.end(), [&](const topology::Device& d) { return d.kind == kind; });
  };
  if (hashes(routing.policy) && tiers(topology::DeviceKind::kCore) && routing.tier_offset == 0 &&
      (is_linear(routing.hash) || routing.seed == scenario::SwitchSeed::kSame)) {
    notes.push_back(fmt::format("leaves and spines hash alike ({}{}): spines see polarized traffic; routing.tier_offset lets them read other bits",
                                word_of(routing.hash), is_linear(routing.hash) ? ", which is linear: seeds only rename next hops" : ""));
  }
  if (routing.policy == scenario::RoutingPolicy::kSpray) {
    Duration longest;
    for (const topology::Link& link : fabric.links)
      if (link.kind == topology::LinkKind::kNetwork) longest = std::max(longest, link.latency);
    notes.push_back(fmt::format("receivers put sprayed packets in order again: {} of buffer a NIC for each {} by which paths differ",
                                human_bytes(Bytes{static_cast<std::int64_t>(fabric.links[fabric.bundles[fabric.ports.front().up].links.front().index()].rate.si() * longest.seconds())}),
                                human_duration(longest)));
  }
  return notes;
}

}  // namespace stepcast::app
