#include "executor/common/sampling.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/base/check.hpp"

namespace stepcast::executor {
namespace {

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

Spread spread_of(std::span<const double> seconds) {
  SIM_CHECK(!seconds.empty());
  constexpr double kNormal = 1.4826;  // MAD to standard deviation of a normal distribution
  Spread spread{.median_s = median({seconds.begin(), seconds.end()}), .relative = 0.0};
  std::vector<double> away;
  for (const double s : seconds) away.push_back(std::fabs(s - spread.median_s));
  if (spread.median_s > 0.0) spread.relative = kNormal * median(std::move(away)) / spread.median_s;
  return spread;
}

bool has_enough(std::span<const double> seconds, const SamplingRule& rule) {
  if (seconds.size() < rule.least) return false;
  if (seconds.size() >= rule.most) return true;
  if (std::accumulate(seconds.begin(), seconds.end(), 0.0) >= rule.budget_s) return true;
  return spread_of(seconds).relative / std::sqrt(static_cast<double>(seconds.size())) < rule.target;
}

}  // namespace stepcast::executor
