#include "models/collective/cost.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "models/collective/nccl_constants.hpp"
#include "models/collective/nccl_releases.hpp"

namespace stepcast::collective {
namespace {

constexpr std::array kProtocols{Protocol::kLl, Protocol::kLl128, Protocol::kSimple};

bool is_pairwise(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::kPairwise:
    case Algorithm::kShift:
    case Algorithm::kPxn:
    case Algorithm::kPxnShift:
    case Algorithm::kTwoStep: return true;
    default: return false;
  }
}

// Between two GPUs at most a pair's channels move: n of them share the traffic of an all-to-all.
double pair_ceiling(Algorithm algorithm, const Layout& layout, const Parameters& p) {
  if (algorithm == Algorithm::kPairwise) return p.local.pair_ceiling * static_cast<double>(layout.ranks);
  return algorithm == Algorithm::kShift ? p.local.pair_ceiling : kNoCeiling;
}

// Payload that a protocol reaches whatever the links [B/s], in terms of the algorithm's traffic.
double ceiling(Algorithm algorithm, Protocol protocol, Bytes bytes, const Layout& layout, const Parameters& p) {
  // NCCL states ceilings as bus bandwidth; a tree's traffic is the buffer, half of a ring's.
  const double share = algorithm == Algorithm::kTree ? 0.5 : 1.0;
  const auto channels = static_cast<double>(channels_used(algorithm, protocol, bytes, layout.ranks, p.channels));
  if (protocol == Protocol::kLl) {
    if (layout.hosts > 1) return share * p.network.ll_ceiling;
    return is_pairwise(algorithm) ? p.local.pairwise_ll_ceiling : share * p.local.ll_ceiling;
  }
  if (protocol == Protocol::kLl128) {
    const double all = share * p.local.ll128_channel_ceiling * channels;
    return layout.hosts > 1 ? std::min(all, share * p.network.ll128_ceiling * static_cast<double>(layout.nics)) : all;
  }
  if (layout.hosts < 2) return pair_ceiling(algorithm, layout, p);
  if (algorithm != Algorithm::kTree) return is_pairwise(algorithm) ? kNoCeiling : p.network.simple_ceiling;
  const double channel = layout.hosts == 2 ? p.network.tree_channel_ceiling_two : p.network.tree_channel_ceiling_many;
  return share * std::min(channels * channel, p.network.simple_ceiling);
}

// Of the rate that links inside hosts carry.
double local_efficiency(Algorithm algorithm, Protocol protocol, const LocalParameters& local) {
  if (algorithm == Algorithm::kNvls || algorithm == Algorithm::kNvlsTree) return local.nvls_efficiency;
  if (is_pairwise(algorithm)) return local.pairwise_efficiency;
  return local.efficiency[static_cast<std::size_t>(protocol)];
}

// Wire bytes per byte of traffic.
double wire_factor(Algorithm algorithm, Protocol protocol, Bytes bytes, const Parameters& p) {
  double factor = p.wire_factor[static_cast<std::size_t>(protocol)];
  if (algorithm == Algorithm::kTree) factor /= p.network.tree_efficiency * tree_correction(protocol, bytes);
  if (algorithm == Algorithm::kPat) factor /= p.pat_efficiency;
  return factor;
}

// What (4) of cost.hpp takes.
double own_block_s(plan::CollectiveKind kind, Algorithm algorithm, Bytes bytes, const Layout& layout, const Parameters& p) {
  const double own = static_cast<double>(bytes.count()) / static_cast<double>(layout.ranks);
  if (kind == plan::CollectiveKind::kAllToAll) return own / p.local.pairwise_own_rate;
  const bool has_own = kind == plan::CollectiveKind::kAllReduce || kind == plan::CollectiveKind::kAllGather || kind == plan::CollectiveKind::kReduceScatter;
  return algorithm == Algorithm::kRing && has_own ? own / p.local.own_rate : 0.0;
}

// Hops between hosts that a chunk makes before all of them move: up a tree and down again. A ring's hosts all send from the start;
// chunks of NVLS trees are a quarter (four hosts and more: an eighth) of a tree's, so that their hops come to about one.
double fill_hops(Algorithm algorithm, const Layout& layout) {
  return algorithm == Algorithm::kTree ? 2.0 * std::floor(std::log2(static_cast<double>(layout.hosts))) : 1.0;
}

bool on_plateau(plan::CollectiveKind kind, Bytes bytes, const Layout& layout, const Parameters& p) {
  constexpr std::int64_t kLeast = 64;  // bytes for each channel and rank
  return kind == plan::CollectiveKind::kAllReduce && layout.hosts > 1 &&
         bytes.count() / (p.channels * static_cast<std::int64_t>(layout.ranks)) >= kLeast;
}

// Before it estimated times, NCCL chose by size (nccl_releases.hpp).
Choice choose_by_size(plan::CollectiveKind kind, Bytes bytes, const Layout& layout, const IdleRates& idle, const Forced& forced,
                      const Parameters& parameters) {
  const std::vector<Algorithm> able = candidates(kind, layout, parameters, forced);
  const bool tree = able.front() == Algorithm::kTree || (able.size() > 1 && bytes.count() <= tree_limit(layout, parameters.channels));
  const Algorithm algorithm = tree ? Algorithm::kTree : able.front();
  const bool short_enough = bytes.count() <= ll_limit(kind, algorithm, layout, parameters.channels);
  Protocol protocol = short_enough && has_protocol(algorithm, Protocol::kLl, layout) ? Protocol::kLl : Protocol::kSimple;
  if (forced.protocol && *forced.protocol != Protocol::kLl128 && has_protocol(algorithm, *forced.protocol, layout)) protocol = *forced.protocol;
  return evaluate(kind, bytes, layout, algorithm, protocol, idle[static_cast<std::size_t>(algorithm)], parameters).choice;
}

}  // namespace

Cost evaluate(plan::CollectiveKind kind, Bytes bytes, const Layout& layout, Algorithm algorithm, Protocol protocol,
              const IdleRate& idle, const Parameters& parameters) {
  const double wire = wire_factor(algorithm, protocol, bytes, parameters);
  Choice choice{.algorithm = algorithm, .protocol = protocol, .latency = {}, .wire_bytes = {}, .rate_cap = {}};
  choice.wire_bytes = wire * traffic_bytes(kind, algorithm, bytes, layout.ranks);
  const double local = local_efficiency(algorithm, protocol, parameters.local) * idle.local;
  const double inside = has_steps(algorithm) ? 1.0 / (1.0 / local + 1.0 / idle.network) : local;
  const double cap = std::min(inside, wire * ceiling(algorithm, protocol, bytes, layout, parameters));
  if (cap < kNoCeiling) choice.rate_cap = cap;
  const double rate = std::min(idle.whole, cap);

  double latency_s = latency_of(kind, algorithm, protocol, layout, parameters).seconds();
  if (protocol == Protocol::kSimple) {
    if (algorithm == Algorithm::kRing && on_plateau(kind, bytes, layout, parameters)) latency_s *= parameters.network.ring_plateau;
    const bool many = layout.hosts > 1;
    const Fill& fill = many ? parameters.network.fill : parameters.local.fill;
    const double channels = many ? static_cast<double>(layout.nics) * fill_hops(algorithm, layout) : 1.0;
    latency_s += std::min(fill.share * choice.wire_bytes, fill.bytes * channels) / rate;
  }
  latency_s += own_block_s(kind, algorithm, bytes, layout, parameters);
  choice.latency = Duration::from_seconds(latency_s);
  return {choice, latency_s + choice.wire_bytes / rate};
}

Choice choose(plan::CollectiveKind kind, Bytes bytes, const Layout& layout, const IdleRates& idle, const Forced& forced,
              const Parameters& parameters) {
  if (forced.nccl && *forced.nccl < kFirstWithModel) return choose_by_size(kind, bytes, layout, idle, forced, parameters);
  Choice best;
  double best_s = std::numeric_limits<double>::infinity();
  for (const Algorithm algorithm : candidates(kind, layout, parameters, forced)) {
    const bool has_forced = forced.protocol && has_protocol(algorithm, *forced.protocol, layout);
    for (const Protocol protocol : kProtocols) {
      if (!has_protocol(algorithm, protocol, layout) || (has_forced && protocol != *forced.protocol)) continue;
      const Cost cost = evaluate(kind, bytes, layout, algorithm, protocol, idle[static_cast<std::size_t>(algorithm)], parameters);
      if (cost.seconds < best_s) {
        best = cost.choice;
        best_s = cost.seconds;
      }
    }
  }
  return best;
}

}  // namespace stepcast::collective
