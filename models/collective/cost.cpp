#include "models/collective/cost.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace stepcast::collective {
namespace {

double at(const PerProtocol<double>& table, Protocol protocol) { return table[static_cast<std::size_t>(protocol)]; }

double ring_latency_s(plan::CollectiveKind kind, Protocol protocol, const Layout& layout, const Parameters& p) {
  const double rounds = kind == plan::CollectiveKind::kAllReduce ? 2.0 : 1.0;
  const double steps = rounds * static_cast<double>(layout.ranks - 1);
  const double network_steps = rounds * static_cast<double>(layout.hosts - 1);
  double local = layout.nvlink ? at(p.ring_nvlink_s, protocol) : at(p.ring_pcie_s, protocol);
  if (layout.hosts > 1) {
    const double messages = protocol == Protocol::kSimple ? 3.0 : 1.0;
    local = std::max(local, messages * p.network_overhead_s);
  }
  return at(p.ring_base_s, protocol) + (steps - network_steps) * local +
         network_steps * at(p.ring_network_s, protocol);
}

double tree_latency_s(Protocol protocol, const Layout& layout, const Parameters& p) {
  const double local_steps = static_cast<double>(layout.ranks) / static_cast<double>(layout.hosts) - 1.0;
  const double network_steps = std::floor(std::log2(static_cast<double>(layout.hosts)));
  const double local = layout.nvlink ? at(p.tree_nvlink_s, protocol) : at(p.tree_pcie_s, protocol);
  return at(p.tree_base_s, protocol) +
         2.0 * (local_steps * local + network_steps * at(p.tree_network_s, protocol));
}

// All pairs exchange at once: one network or local hop after the launch, as grouped send/recv.
double pairwise_latency_s(const Layout& layout, const Parameters& p) {
  const double hop = layout.hosts > 1 ? at(p.ring_network_s, Protocol::kSimple)
                                      : at(layout.nvlink ? p.ring_nvlink_s : p.ring_pcie_s, Protocol::kSimple);
  return p.point_to_point_base_s + hop;
}

double wire_factor(Algorithm algorithm, Protocol protocol, const Parameters& p) {
  return at(p.wire_factor, protocol) * (algorithm == Algorithm::kTree ? p.tree_wire_factor : 1.0);
}

}  // namespace

Duration latency_of(plan::CollectiveKind kind, Algorithm algorithm, Protocol protocol, const Layout& layout,
                    const Parameters& parameters) {
  if (layout.ranks < 2) return {};
  switch (algorithm) {
    case Algorithm::kRing: return Duration::from_seconds(ring_latency_s(kind, protocol, layout, parameters));
    case Algorithm::kTree: return Duration::from_seconds(tree_latency_s(protocol, layout, parameters));
    case Algorithm::kPairwise: return Duration::from_seconds(pairwise_latency_s(layout, parameters));
  }
  return {};
}

Choice choose(plan::CollectiveKind kind, Bytes bytes, const Layout& layout, double ring_rate, double tree_rate,
              std::optional<Algorithm> forced, const Parameters& parameters) {
  const auto evaluate = [&](Algorithm algorithm, Protocol protocol) {
    Choice choice{.algorithm = algorithm, .protocol = protocol};
    choice.latency = latency_of(kind, algorithm, protocol, layout, parameters);
    choice.wire_bytes = traffic_bytes(kind, algorithm, bytes, layout.ranks) * wire_factor(algorithm, protocol, parameters);
    if (protocol == Protocol::kLl) {
      const double payload = layout.hosts > 1 ? parameters.ll_ceiling_inter : parameters.ll_ceiling_intra;
      choice.rate_cap = payload * at(parameters.wire_factor, Protocol::kLl);
    }
    return choice;
  };
  if (kind == plan::CollectiveKind::kAllToAll) return evaluate(Algorithm::kPairwise, Protocol::kSimple);

  // Trees exist for all-reduce only, and NCCL builds none inside one host.
  const bool has_tree = kind == plan::CollectiveKind::kAllReduce && layout.hosts > 1;
  std::vector<Algorithm> candidates;
  if (!has_tree || forced != Algorithm::kTree) candidates.push_back(Algorithm::kRing);
  if (has_tree && forced != Algorithm::kRing) candidates.push_back(Algorithm::kTree);

  Choice best;
  double best_s = std::numeric_limits<double>::infinity();
  for (const Algorithm algorithm : candidates) {
    for (const Protocol protocol : {Protocol::kLl, Protocol::kLl128, Protocol::kSimple}) {
      // LL128 needs 128-byte atomic stores: NVLink within the host.
      if (protocol == Protocol::kLl128 && !layout.nvlink) continue;
      const Choice choice = evaluate(algorithm, protocol);
      double rate = algorithm == Algorithm::kRing ? ring_rate : tree_rate;
      if (choice.rate_cap) rate = std::min(rate, *choice.rate_cap);
      const double time_s = choice.latency.seconds() + choice.wire_bytes / rate;
      if (time_s < best_s) {
        best = choice;
        best_s = time_s;
      }
    }
  }
  return best;
}

}  // namespace stepcast::collective
