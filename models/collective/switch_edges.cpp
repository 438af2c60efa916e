// Algorithms in which switches do the sums: NVLS inside a host, CollNet between hosts. Traffic is the buffer, S.
//
// NVLS      Every GPU owns 1/n of the buffer: the switch reads that part from all n and hands the sum to its
//           owner, who writes it back to all through the switch. Each GPU sends S + S/n and receives as much:
//           as a ring whose edges carry S (1 + 1/n) loads the links to a switch. All-gather: each sends its part once and
//           receives S; reduce-scatter the reverse: S on the busier direction.
// NVLS tree NVLS inside the hosts; between them each local rank's part runs over the double binary tree.
// CollNet   NVLS or a chain inside; each host sends its sum up once and gets the result once, over all its NICs.
//           As a ring between hosts of share S: exact on NICs and leaves, too much on links between switches.
#include "models/collective/hosts.hpp"

namespace stepcast::collective {
namespace {

void add_switch_load(const Host& host, std::vector<Edge>& edges) {
  if (host.size() < 2) return;
  const double share = 1.0 + 1.0 / static_cast<double>(host.size());
  for (std::size_t i = 0; i < host.size(); ++i) edges.push_back({host[i], host[(i + 1) % host.size()], share});
}

}  // namespace

std::vector<Edge> nvls_edges(std::span<const Member> members) {
  std::vector<Edge> edges;
  for (const Host& host : by_host(members)) add_switch_load(host, edges);
  return edges;
}

std::vector<Edge> nvls_tree_edges(std::span<const Member> members) {
  const std::vector<Host> hosts = by_host(members);
  std::vector<Edge> edges = nvls_edges(members);
  const std::size_t channels = channel_count(hosts);
  const double share = 0.5 / static_cast<double>(channels);
  const std::vector<std::size_t> parent = tree_parents(hosts.size());
  for (std::size_t channel = 0; channel < channels; ++channel) {
    for (std::size_t tree = 0; tree < 2; ++tree) {
      for (std::size_t label = 1; label < hosts.size(); ++label) {
        const std::uint32_t low = network_gpu(hosts[host_of_label(label, tree, hosts.size())], channel);
        const std::uint32_t high = network_gpu(hosts[host_of_label(parent[label], tree, hosts.size())], channel);
        edges.push_back({low, high, share});
        edges.push_back({high, low, share});
      }
    }
  }
  return edges;
}

std::vector<Edge> collnet_edges(std::span<const Member> members) {
  const std::vector<Host> hosts = by_host(members);
  std::vector<Edge> edges = nvls_edges(members);
  const std::size_t channels = channel_count(hosts);
  for (std::size_t channel = 0; channel < channels; ++channel) {
    for (std::size_t h = 0; h < hosts.size(); ++h) {
      edges.push_back({network_gpu(hosts[h], channel), network_gpu(hosts[(h + 1) % hosts.size()], channel), 1.0 / static_cast<double>(channels)});
    }
  }
  return edges;
}

}  // namespace stepcast::collective
