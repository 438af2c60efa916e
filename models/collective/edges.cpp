#include "models/collective/edges.hpp"

#include <algorithm>
#include <map>

#include "sim/base/check.hpp"

namespace stepcast::collective {
namespace {

using Host = std::vector<std::uint32_t>;  // GPUs of the group on one host, in rank order

// Hosts in the order in which the ranks first touch them.
std::vector<Host> by_host(std::span<const Member> members) {
  std::vector<Host> hosts;
  std::map<std::uint32_t, std::size_t> position;
  for (const Member& member : members) {
    const auto [it, is_new] = position.try_emplace(member.node, hosts.size());
    if (is_new) hosts.emplace_back();
    hosts[it->second].push_back(member.gpu);
  }
  return hosts;
}

// One channel a local rank where every host has that many; hosts with fewer reuse theirs.
std::size_t channel_count(const std::vector<Host>& hosts) {
  std::size_t widest = 1;
  for (const Host& host : hosts) widest = std::max(widest, host.size());
  return widest;
}

std::uint32_t network_gpu(const Host& host, std::size_t channel) { return host[channel % host.size()]; }

// The chain through one host from the channel's network GPU and back to it.
void add_local_ring(const Host& host, std::size_t channel, double share, std::vector<Edge>& edges) {
  for (std::size_t i = 0; i < host.size() && host.size() > 1; ++i) {
    edges.push_back({host[(channel + i) % host.size()], host[(channel + i + 1) % host.size()], share});
  }
}

std::vector<Edge> ring_edges(std::span<const Member> members) {
  const std::vector<Host> hosts = by_host(members);
  std::vector<Edge> edges;
  if (hosts.size() == 1) {
    add_local_ring(hosts.front(), 0, 1.0, edges);
    return edges;
  }
  const std::size_t channels = channel_count(hosts);
  const double share = 1.0 / static_cast<double>(channels);
  for (std::size_t channel = 0; channel < channels; ++channel) {
    for (std::size_t h = 0; h < hosts.size(); ++h) {
      add_local_ring(hosts[h], channel, share, edges);
      const Host& next = hosts[(h + 1) % hosts.size()];
      edges.push_back({network_gpu(hosts[h], channel), network_gpu(next, channel), share});
    }
  }
  return edges;
}

// Parents in a binary tree over labels 0..count-1 whose odd labels are all leaves: label i hangs below
// the label that clears its lowest set bit and sets the next one (or, past the end, only clears it).
// The root's parent is `count`.
std::vector<std::size_t> tree_parents(std::size_t count) {
  std::vector<std::size_t> parent(count, count);
  for (std::size_t i = 1; i < count; ++i) {
    const std::size_t bit = i & (~i + 1);
    const std::size_t up = (i ^ bit) | (bit << 1);
    parent[i] = up < count ? up : i ^ bit;
  }
  return parent;
}

// Host behind a label. The second tree flips parity, so its leaves are the first one's inner nodes:
// mirrored for an even count, shifted by one for an odd count.
std::size_t host_of_label(std::size_t label, std::size_t tree, std::size_t count) {
  if (tree == 0) return label;
  return count % 2 == 0 ? count - 1 - label : (label + 1) % count;
}

std::vector<Edge> tree_edges(std::span<const Member> members) {
  const std::vector<Host> hosts = by_host(members);
  const std::size_t channels = channel_count(hosts);
  const double share = 0.5 / static_cast<double>(channels);
  const std::vector<std::size_t> parent = tree_parents(hosts.size());
  std::vector<Edge> edges;
  const auto both_ways = [&](std::uint32_t a, std::uint32_t b) {
    edges.push_back({a, b, share});
    edges.push_back({b, a, share});
  };
  for (std::size_t channel = 0; channel < channels; ++channel) {
    for (std::size_t tree = 0; tree < 2; ++tree) {
      for (std::size_t label = 0; label < hosts.size(); ++label) {
        const Host& host = hosts[host_of_label(label, tree, hosts.size())];
        for (std::size_t i = 0; i + 1 < host.size(); ++i) {
          both_ways(host[(channel + i) % host.size()], host[(channel + i + 1) % host.size()]);
        }
        if (parent[label] == hosts.size()) continue;  // the root
        const Host& up = hosts[host_of_label(parent[label], tree, hosts.size())];
        both_ways(network_gpu(host, channel), network_gpu(up, channel));
      }
    }
  }
  return edges;
}

std::vector<Edge> pairwise_edges(std::span<const Member> members) {
  std::vector<Edge> edges;
  edges.reserve(members.size() * (members.size() - 1));
  const double share = 1.0 / static_cast<double>(members.size());
  for (const Member& from : members) {
    for (const Member& to : members) {
      if (from.gpu != to.gpu) edges.push_back({from.gpu, to.gpu, share});
    }
  }
  return edges;
}

}  // namespace

std::vector<Edge> edges_of(Algorithm algorithm, std::span<const Member> members) {
  if (members.size() < 2) return {};
  switch (algorithm) {
    case Algorithm::kRing: return ring_edges(members);
    case Algorithm::kTree: return tree_edges(members);
    case Algorithm::kPairwise: return pairwise_edges(members);
  }
  return {};
}

double traffic_bytes(plan::CollectiveKind kind, Algorithm algorithm, Bytes bytes, std::size_t ranks) {
  SIM_CHECK(ranks >= 1);
  const double n = static_cast<double>(ranks);
  const double size = bytes.si();
  if (algorithm != Algorithm::kRing) return size;
  switch (kind) {
    case plan::CollectiveKind::kAllReduce: return 2.0 * (n - 1.0) / n * size;
    case plan::CollectiveKind::kAllGather:
    case plan::CollectiveKind::kReduceScatter: return (n - 1.0) / n * size;
    case plan::CollectiveKind::kBroadcast:
    case plan::CollectiveKind::kAllToAll: return size;
  }
  return size;
}

}  // namespace stepcast::collective
