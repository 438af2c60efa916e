#include "models/collective/edges.hpp"

#include <numeric>

#include "models/collective/hosts.hpp"
#include "sim/base/check.hpp"

namespace stepcast::collective {
namespace {

// Steps between neighbours of a chain through `size` GPUs of a full mesh: all that reach every GPU.
std::vector<std::size_t> strides_of(std::size_t size) {
  std::vector<std::size_t> strides{1};
  for (std::size_t s = 2; s < size; ++s)
    if (std::gcd(s, size) == 1) strides.push_back(s);
  return strides;
}

std::size_t stride_of(std::size_t channel, std::size_t size, Wiring wiring) {
  if (wiring == Wiring::kShared) return 1;
  const std::vector<std::size_t> strides = strides_of(size);
  return strides[channel % strides.size()];
}

// The GPU at place i of a channel's chain through a host, which starts at its network GPU.
std::uint32_t chain_gpu(const Host& host, std::size_t channel, std::size_t i, Wiring wiring) {
  return host[(channel + i * stride_of(channel, host.size(), wiring)) % host.size()];
}

// The chain through one host from the channel's network GPU and back to it.
void add_local_ring(const Host& host, std::size_t channel, double share, Wiring wiring, std::vector<Edge>& edges) {
  for (std::size_t i = 0; i < host.size() && host.size() > 1; ++i) {
    edges.push_back({chain_gpu(host, channel, i, wiring), chain_gpu(host, channel, i + 1, wiring), share});
  }
}

std::vector<Edge> ring_edges(std::span<const Member> members, Wiring wiring) {
  const std::vector<Host> hosts = by_host(members);
  std::vector<Edge> edges;
  if (hosts.size() == 1) {
    const std::size_t rings = wiring == Wiring::kShared ? 1 : strides_of(hosts.front().size()).size();
    for (std::size_t r = 0; r < rings; ++r) add_local_ring(hosts.front(), r, 1.0 / static_cast<double>(rings), wiring, edges);
    return edges;
  }
  const std::size_t channels = channel_count(hosts);
  const double share = 1.0 / static_cast<double>(channels);
  for (std::size_t channel = 0; channel < channels; ++channel) {
    for (std::size_t h = 0; h < hosts.size(); ++h) {
      add_local_ring(hosts[h], channel, share, wiring, edges);
      const Host& next = hosts[(h + 1) % hosts.size()];
      edges.push_back({network_gpu(hosts[h], channel), network_gpu(next, channel), share});
    }
  }
  return edges;
}

std::vector<Edge> tree_edges(std::span<const Member> members, Wiring wiring) {
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
          both_ways(chain_gpu(host, channel, i, wiring), chain_gpu(host, channel, i + 1, wiring));
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

std::vector<Edge> shift_edges(std::span<const Member> members) {
  std::vector<Edge> edges;
  for (std::size_t i = 0; i < members.size(); ++i) edges.push_back({members[i].gpu, members[(i + 1) % members.size()].gpu, 1.0});
  return edges;
}

}  // namespace

std::vector<Edge> edges_of(Algorithm algorithm, std::span<const Member> members, Wiring wiring) {
  if (members.size() < 2) return {};
  switch (algorithm) {
    case Algorithm::kRing: return ring_edges(members, wiring);
    case Algorithm::kTree: return tree_edges(members, wiring);
    case Algorithm::kNvls: return nvls_edges(members);
    case Algorithm::kNvlsTree: return nvls_tree_edges(members);
    case Algorithm::kCollNet: return collnet_edges(members);
    case Algorithm::kPat: return pat_edges(members);
    case Algorithm::kPairwise: return pairwise_edges(members);
    case Algorithm::kShift: return shift_edges(members);
  }
  return {};
}

double traffic_bytes(plan::CollectiveKind kind, Algorithm algorithm, Bytes bytes, std::size_t ranks) {
  SIM_CHECK(ranks >= 1);
  const double n = static_cast<double>(ranks);
  const double size = bytes.si();
  if (algorithm != Algorithm::kRing && algorithm != Algorithm::kPat) return size;
  switch (kind) {
    case plan::CollectiveKind::kAllReduce: return 2.0 * (n - 1.0) / n * size;
    case plan::CollectiveKind::kAllGather:
    case plan::CollectiveKind::kReduceScatter: return (n - 1.0) / n * size;
    case plan::CollectiveKind::kBroadcast:
    case plan::CollectiveKind::kAllToAll:
    case plan::CollectiveKind::kSendReceive: return size;
  }
  return size;
}

}  // namespace stepcast::collective
