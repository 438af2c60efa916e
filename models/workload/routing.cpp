#include "models/workload/routing.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "sim/base/check.hpp"
#include "sim/base/random.hpp"

namespace stepcast::workload {

double busiest_rank_load(std::int64_t experts, std::int64_t ranks, const Routing& routing) {
  SIM_CHECK(ranks >= 1 && experts % ranks == 0, experts, ranks);
  if (routing.skew <= 0.0 || routing.capacity_factor || ranks == 1) return 1.0;
  std::vector<double> shares;
  for (std::int64_t i = 1; i <= experts; ++i) shares.push_back(std::pow(static_cast<double>(i), -routing.skew));
  const double all = std::accumulate(shares.begin(), shares.end(), 0.0);
  Rng rng{routing.seed, "experts on ranks"};
  for (std::size_t i = shares.size(); i > 1; --i) std::swap(shares[i - 1], shares[rng.below(i)]);
  const auto local = static_cast<std::ptrdiff_t>(experts / ranks);
  double most = 0.0;
  for (auto rank = shares.begin(); rank != shares.end(); rank += local)
    most = std::max(most, std::accumulate(rank, rank + local, 0.0));
  return most / all * static_cast<double>(ranks);
}

double hosts_of_a_token(std::int64_t hosts, std::int64_t limit, std::int64_t top_k) {
  const auto open = static_cast<double>(limit > 0 ? std::min(hosts, limit) : hosts);
  return open * (1.0 - std::pow(1.0 - 1.0 / open, static_cast<double>(top_k)));
}

RoutedRows routed_rows(std::int64_t tokens, std::int64_t experts, std::int64_t top_k, std::int64_t ranks,
                       const Routing& routing) {
  const std::int64_t choices = tokens * top_k;
  if (routing.capacity_factor) {
    const double mean = static_cast<double>(choices) / static_cast<double>(experts);
    const std::int64_t rows = experts * static_cast<std::int64_t>(std::ceil(*routing.capacity_factor * mean));
    return {rows, rows};
  }
  const double load = busiest_rank_load(experts, ranks, routing);
  // No expert gets a token twice.
  const double most = static_cast<double>(tokens * ranks) * static_cast<double>(std::min(top_k, experts / ranks));
  return {choices, static_cast<std::int64_t>(std::llround(std::min(most, load * static_cast<double>(choices))))};
}

}  // namespace stepcast::workload
