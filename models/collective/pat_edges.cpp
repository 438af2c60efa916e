// PAT (parallel aggregated trees) for all-gather and reduce-scatter: binomial trees from every rank at once. In
// the round of distance d each rank passes on to the rank d away what it holds of d ranks: d/n S of the n-1 in all.
#include <algorithm>

#include "models/collective/hosts.hpp"

namespace stepcast::collective {

std::vector<Edge> pat_edges(std::span<const Member> members) {
  const std::size_t n = members.size();
  std::vector<Edge> edges;
  for (std::size_t distance = 1; distance < n; distance *= 2) {
    const std::size_t held = std::min(distance, n - distance);
    const double share = static_cast<double>(held) / static_cast<double>(n - 1);
    for (std::size_t i = 0; i < n; ++i) edges.push_back({members[i].gpu, members[(i + distance) % n].gpu, share});
  }
  return edges;
}

}  // namespace stepcast::collective
