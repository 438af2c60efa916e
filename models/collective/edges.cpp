#include "models/collective/edges.hpp"

#include "models/collective/hosts.hpp"
#include "models/collective/mesh_chains.hpp"
#include "sim/base/check.hpp"

namespace stepcast::collective {
namespace {

// The chains of all channels through one host, each from its network GPU and back to it: the same links for every channel.
void add_local_ring(const Host& host, std::vector<Edge>& edges) {
  for (std::size_t i = 0; i < host.size() && host.size() > 1; ++i) edges.push_back({host[i], host[(i + 1) % host.size()], 1.0});
}

// The chains of one tree, up and down: a channel's ends before its network GPU.
void add_local_chains(const Host& host, std::size_t channels, double share, std::vector<Edge>& edges) {
  for (std::size_t i = 0; i < host.size() && host.size() > 1; ++i) {
    const std::size_t next = (i + 1) % host.size();
    const std::size_t from_next = next < channels ? (channels - next - 1) / host.size() + 1 : 0;  // channels that start there
    if (from_next == channels) continue;
    const double sum = share * static_cast<double>(channels - from_next);
    edges.push_back({host[i], host[next], sum});
    edges.push_back({host[next], host[i], sum});
  }
}

std::vector<Edge> ring_edges(std::span<const Member> members, const HostMesh& mesh) {
  const std::vector<Host> hosts = by_host(members);
  MeshChains chains{mesh};
  std::vector<Edge> edges;
  if (hosts.size() == 1) {
    if (!chains.add(hosts.front(), 1.0, edges)) add_local_ring(hosts.front(), edges);
    return edges;
  }
  const std::size_t channels = channel_count(hosts);
  const double share = 1.0 / static_cast<double>(channels);
  for (std::size_t h = 0; h < hosts.size(); ++h) {
    if (!chains.add(hosts[h], chain_part(hosts[h]), edges)) add_local_ring(hosts[h], edges);
    const Host& next = hosts[(h + 1) % hosts.size()];
    for (std::size_t channel = 0; channel < channels; ++channel) {
      edges.push_back({network_gpu(hosts[h], channel), network_gpu(next, channel), share});
    }
  }
  return edges;
}

std::vector<Edge> tree_edges(std::span<const Member> members, const HostMesh& mesh) {
  const std::vector<Host> hosts = by_host(members);
  const std::size_t channels = channel_count(hosts);
  const double share = 0.5 / static_cast<double>(channels);
  const std::vector<std::size_t> parent = tree_parents(hosts.size());
  MeshChains chains{mesh};
  std::vector<Edge> edges;
  const auto both_ways = [&](std::uint32_t a, std::uint32_t b) {
    edges.push_back({a, b, share});
    edges.push_back({b, a, share});
  };
  for (const Host& host : hosts) {  // two trees, each up and down
    if (!chains.add(host, 2.0 * chain_part(host), edges)) add_local_chains(host, channels, 2.0 * share, edges);
  }
  for (std::size_t channel = 0; channel < channels; ++channel) {
    for (std::size_t tree = 0; tree < 2; ++tree) {
      for (std::size_t label = 0; label < hosts.size(); ++label) {
        const std::size_t h = host_of_label(label, tree, hosts.size());
        const Host& host = hosts[h];
        if (parent[label] == hosts.size()) continue;  // the root
        const Host& up = hosts[host_of_label(parent[label], tree, hosts.size())];
        both_ways(network_gpu(host, channel), network_gpu(up, channel));
      }
    }
  }
  return edges;
}

std::vector<Edge> pairwise_edges(std::span<const Member> members, const Volumes& volumes) {
  const std::size_t n = members.size();
  std::vector<Edge> edges;
  edges.reserve(n * (n - 1));
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      const double share = volumes.share(i, j, n);
      if (i != j && share > 0.0) edges.push_back({members[i].gpu, members[j].gpu, share});
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

std::vector<Edge> edges_of(Algorithm algorithm, std::span<const Member> members, const HostMesh& mesh, const Volumes& volumes) {
  if (members.size() < 2) return {};
  switch (algorithm) {
    case Algorithm::kRing: return ring_edges(members, mesh);
    case Algorithm::kTree: return tree_edges(members, mesh);
    case Algorithm::kNvls: return nvls_edges(members);
    case Algorithm::kNvlsTree: return nvls_tree_edges(members);
    case Algorithm::kCollNet: return collnet_edges(members);
    case Algorithm::kPat: return pat_edges(members);
    case Algorithm::kPairwise: return pairwise_edges(members, volumes);
    case Algorithm::kShift: return shift_edges(members);
    case Algorithm::kPxn:
    case Algorithm::kTwoStep: return pxn_edges(members, volumes);
    case Algorithm::kPxnShift: return pxn_shift_edges(members);
    case Algorithm::kHierarchical: return hierarchical_edges(members, mesh);
  }
  return {};
}

double traffic_bytes(plan::CollectiveKind kind, Algorithm algorithm, Bytes bytes, std::size_t ranks) {
  SIM_CHECK(ranks >= 1);
  const double n = static_cast<double>(ranks);
  const double size = bytes.si();
  if (algorithm == Algorithm::kHierarchical) return kind == plan::CollectiveKind::kAllReduce ? 2.0 * size : size;
  // NVLS' edges are those of an all-reduce, S + S/n; a gathered or scattered buffer passes each link once.
  if (algorithm == Algorithm::kNvls && kind != plan::CollectiveKind::kAllReduce) return size / (1.0 + 1.0 / n);
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
