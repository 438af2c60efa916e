#include "models/workload/routing.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "sim/base/check.hpp"
#include "sim/base/random.hpp"
#include "sim/plan/volumes.hpp"

namespace stepcast::workload {

std::vector<double> rank_loads(std::int64_t experts, std::int64_t ranks, const Routing& routing) {
  SIM_CHECK(ranks >= 1 && experts % ranks == 0, experts, ranks);
  std::vector<double> loads(static_cast<std::size_t>(ranks), 1.0);
  if (ranks == 1 || routing.skew <= 0.0 || routing.capacity_factor) return loads;
  std::vector<double> shares = plan::zipf(static_cast<std::size_t>(experts), routing.skew);
  const double all = std::accumulate(shares.begin(), shares.end(), 0.0);
  Rng rng{routing.seed, "experts on ranks"};
  for (std::size_t i = shares.size(); i > 1; --i) std::swap(shares[i - 1], shares[rng.below(i)]);
  auto first = shares.begin();
  for (double& load : loads) {
    const auto last = first + static_cast<std::ptrdiff_t>(experts / ranks);
    load = std::accumulate(first, last, 0.0) / all * static_cast<double>(ranks);
    first = last;
  }
  return loads;
}

double busiest_rank_load(std::int64_t experts, std::int64_t ranks, const Routing& routing) {
  const std::vector<double> loads = rank_loads(experts, ranks, routing);
  return *std::max_element(loads.begin(), loads.end());
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
