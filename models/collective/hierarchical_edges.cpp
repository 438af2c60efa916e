// Hierarchical all-reduce, all-gather and reduce-scatter: a ring through each host for the whole buffer, and a ring between
// hosts on every rail for that rail's part of it. Traffic is S for all-gather and reduce-scatter, 2 S for all-reduce, which is
// both: a host's edge carries (m-1)/m of it, a rail's (N-1)/N / m. The steps follow each other (cost.cpp): the time is
// the sum of both levels, but the latency is that of 2 (m-1) + 2 (N-1) steps instead of a ring's 2 (n-1).
// Two-step all-to-all has the edges of PXN and no overlap either.
#include "models/collective/hosts.hpp"
#include "models/collective/mesh_chains.hpp"

namespace stepcast::collective {

std::vector<Edge> hierarchical_edges(std::span<const Member> members, const HostMesh& mesh) {
  const std::vector<Host> hosts = by_host(members);
  MeshChains chains{mesh};
  std::vector<Edge> edges;
  const std::size_t rails = channel_count(hosts);
  const double between = (1.0 - 1.0 / static_cast<double>(hosts.size())) / static_cast<double>(rails);
  for (std::size_t h = 0; h < hosts.size(); ++h) {
    const Host& host = hosts[h];
    if (!chains.add(host, chain_part(host), edges)) {
      for (std::size_t i = 0; i < host.size() && host.size() > 1; ++i)
        edges.push_back({host[i], host[(i + 1) % host.size()], chain_part(host)});
    }
    for (std::size_t rail = 0; rail < rails; ++rail)
      edges.push_back({network_gpu(host, rail), network_gpu(hosts[(h + 1) % hosts.size()], rail), between});
  }
  return edges;
}

}  // namespace stepcast::collective
