// PXN: a message for a GPU of another host first goes over NVLink to the GPU of its own host that has the receiver's place, hence
// its rail, and from there along the rail. Leaves of other rails and the spines see nothing; what the GPUs of a host send to
// one receiver leaves as one message. NCCL 2.12 and later do so wherever GPUs of a host have NVLink.
#include <map>

#include "models/collective/hosts.hpp"

namespace stepcast::collective {
namespace {

struct Slot {
  std::uint32_t gpu = 0;
  std::size_t rank = 0;
};

std::vector<std::vector<Slot>> slots_by_host(std::span<const Member> members) {
  std::map<std::uint32_t, std::size_t> rank_of;
  for (std::size_t r = 0; r < members.size(); ++r) rank_of[members[r].gpu] = r;
  std::vector<std::vector<Slot>> slots;
  for (const Host& host : by_host(members)) {
    std::vector<Slot>& own = slots.emplace_back();
    for (const std::uint32_t gpu : host) own.push_back({gpu, rank_of[gpu]});
  }
  return slots;
}

}  // namespace

std::vector<Edge> pxn_edges(std::span<const Member> members, const Volumes& volumes) {
  const std::size_t n = members.size();
  const std::vector<std::vector<Slot>> hosts = slots_by_host(members);
  std::vector<Edge> edges;
  for (const std::vector<Slot>& host : hosts) {
    const std::size_t m = host.size();
    std::vector<double> inside(m * m, 0.0);  // from one place to another
    for (const std::vector<Slot>& other : hosts) {
      const bool same = &other == &host;
      for (std::size_t j = 0; j < other.size(); ++j) {
        double out = 0.0;
        for (std::size_t i = 0; i < m; ++i) {
          const double share = volumes.share(host[i].rank, other[j].rank, n);
          inside[i * m + j % m] += share;
          out += share;
        }
        if (!same && out > 0.0) edges.push_back({host[j % m].gpu, other[j].gpu, out});
      }
    }
    for (std::size_t i = 0; i < m; ++i)
      for (std::size_t p = 0; p < m; ++p)
        if (i != p && inside[i * m + p] > 0.0) edges.push_back({host[i].gpu, host[p].gpu, inside[i * m + p]});
  }
  return edges;
}

std::vector<Edge> pxn_shift_edges(std::span<const Member> members) {
  const std::vector<std::vector<Slot>> hosts = slots_by_host(members);
  std::map<std::uint32_t, std::pair<std::size_t, std::size_t>> place;  // host, place in it
  for (std::size_t h = 0; h < hosts.size(); ++h)
    for (std::size_t i = 0; i < hosts[h].size(); ++i) place[hosts[h][i].gpu] = {h, i};
  std::vector<Edge> edges;
  for (std::size_t r = 0; r < members.size(); ++r) {
    const std::uint32_t from = members[r].gpu;
    const std::uint32_t to = members[(r + 1) % members.size()].gpu;
    const auto& [host, own] = place[from];
    const auto& [other, rail] = place[to];
    const std::uint32_t proxy = host == other ? from : hosts[host][rail % hosts[host].size()].gpu;
    if (proxy != from) edges.push_back({from, proxy, 1.0});
    edges.push_back({proxy, to, 1.0});
  }
  return edges;
}

}  // namespace stepcast::collective
