// The latency of each algorithm (cost.hpp), term by term as in NCCL's ncclTopoTuneModel.
#include <algorithm>
#include <cmath>

#include "models/collective/cost.hpp"

namespace stepcast::collective {
namespace {

double at(const PerProtocol<double>& table, Protocol protocol) { return table[static_cast<std::size_t>(protocol)]; }

double log2_of(std::size_t hosts) { return std::floor(std::log2(static_cast<double>(hosts))); }

// What this network adds to InfiniBand's hop.
double further_s(Protocol protocol, const NetworkParameters& network) {
  return network.latency_s * (protocol == Protocol::kSimple ? 2.0 : 1.0);
}

// Ring: n-1 steps for each half of an all-reduce; N-1 of them cross hosts. With one rank a host nothing hides
// the network, and NCCL takes the tree's latency.
double ring_s(plan::CollectiveKind kind, Protocol protocol, const Layout& layout, const Parameters& p) {
  const double rounds = kind == plan::CollectiveKind::kAllReduce ? 2.0 : 1.0;
  const double steps = rounds * static_cast<double>(layout.ranks - 1);
  const double network_steps = rounds * static_cast<double>(layout.hosts - 1);
  double local = at(layout.nvlink ? p.local.ring_nvlink_s : p.local.ring_pcie_s, protocol);
  if (layout.hosts > 1) {
    const double messages = protocol == Protocol::kSimple ? 3.0 : 1.0;
    local = std::max(local, messages * p.network.overhead_s);
  }
  const double hop = at(layout.local() == 1 ? p.network.tree_s : p.network.ring_s, protocol) + further_s(protocol, p.network);
  return at(p.local.ring_base_s, protocol) + (steps - network_steps) * local + network_steps * hop;
}

// Tree: up and down again through the n/N - 1 other ranks of a host and log2(N) hosts.
double tree_s(Protocol protocol, const Layout& layout, const Parameters& p) {
  const double local_steps = static_cast<double>(layout.local()) - 1.0;
  const double local = at(layout.nvlink ? p.local.tree_nvlink_s : p.local.tree_pcie_s, protocol);
  const double hop = at(p.network.tree_s, protocol) + further_s(protocol, p.network);
  return at(p.local.tree_base_s, protocol) + 2.0 * (local_steps * local + log2_of(layout.hosts) * hop);
}

double nvls_tree_s(const Layout& layout, const Parameters& p) {
  return p.local.nvls_s + 2.0 * log2_of(layout.hosts) * (p.network.nvls_tree_s + further_s(Protocol::kSimple, p.network));
}

// CollNet direct: ranks to heads, heads to the switch and back.
double collnet_s(const Layout& layout, const Parameters& p) {
  const double others = static_cast<double>(layout.local()) - 1.0;
  return 2.0 * (std::min(1.0, others) * p.local.collnet_s + others * p.local.collnet_arity_s) + p.network.collnet_s +
         further_s(Protocol::kSimple, p.network);
}

// PAT: log2(N) rounds at a fraction of a hop, and a part that grows with the ranks.
double pat_s(const Layout& layout, const Parameters& p) {
  constexpr double kHopShare = 1.0 / 3.5;
  const double hop = at(p.network.tree_s, Protocol::kSimple) + further_s(Protocol::kSimple, p.network);
  return p.pat_base_s + log2_of(layout.hosts) * hop * kHopShare + static_cast<double>(layout.ranks) * p.pat_rank_s;
}

// All pairs exchange at once, as grouped send and receive: one hop after the launch, and what the proxy needs to post the
// further messages of a GPU. PXN: one more hop inside the host; what a host's GPUs send to one receiver is posted at once.
double pairwise_s(Algorithm algorithm, Protocol protocol, const Layout& layout, const Parameters& p) {
  const double base = protocol == Protocol::kLl ? p.local.pairwise_ll_base_s : p.local.pairwise_simple_base_s;
  if (layout.hosts < 2) return base;
  const double hop = at(p.network.ring_s, protocol) + further_s(protocol, p.network);
  const bool relayed = algorithm != Algorithm::kPairwise && algorithm != Algorithm::kShift;
  double messages = 1.0;
  if (algorithm == Algorithm::kPairwise) messages = static_cast<double>(layout.ranks - layout.local());
  if (algorithm == Algorithm::kPxn || algorithm == Algorithm::kTwoStep) messages = static_cast<double>(layout.hosts - 1);
  return base + hop + (messages - 1.0) * p.network.overhead_s + (relayed ? at(p.local.ring_nvlink_s, protocol) : 0.0);
}

// A ring through the host and one along the rail, for each half of an all-reduce.
double hierarchical_s(plan::CollectiveKind kind, const Layout& layout, const Parameters& p) {
  const double rounds = kind == plan::CollectiveKind::kAllReduce ? 2.0 : 1.0;
  const double hop = at(p.network.ring_s, Protocol::kSimple) + further_s(Protocol::kSimple, p.network);
  return (1.0 + rounds) * at(p.local.ring_base_s, Protocol::kSimple) +
         rounds * (static_cast<double>(layout.local() - 1) * at(p.local.ring_nvlink_s, Protocol::kSimple) +
                   static_cast<double>(layout.hosts - 1) * hop);
}

}  // namespace

Duration latency_of(plan::CollectiveKind kind, Algorithm algorithm, Protocol protocol, const Layout& layout,
                    const Parameters& parameters) {
  if (layout.ranks < 2) return {};
  const auto seconds = [&] {
    switch (algorithm) {
      case Algorithm::kRing: return ring_s(kind, protocol, layout, parameters);
      case Algorithm::kTree: return tree_s(protocol, layout, parameters);
      case Algorithm::kNvls: return parameters.local.nvls_s;
      case Algorithm::kNvlsTree: return nvls_tree_s(layout, parameters);
      case Algorithm::kCollNet: return collnet_s(layout, parameters);
      case Algorithm::kPat: return pat_s(layout, parameters);
      case Algorithm::kPairwise:
      case Algorithm::kShift:
      case Algorithm::kPxn:
      case Algorithm::kPxnShift:
      case Algorithm::kTwoStep: return pairwise_s(algorithm, protocol, layout, parameters);
      case Algorithm::kHierarchical: return hierarchical_s(kind, layout, parameters);
    }
    return 0.0;
  };
  return Duration::from_seconds(seconds());
}

}  // namespace stepcast::collective
