// executor/common/sampling.hpp — when a measurement has seen enough: samples until their median is known well, within a budget.
//
// Spread   1.4826 MAD / median, the robust relative deviation of one sample; that of the median is spread / sqrt(n)
// Stop     after at least `least` samples, when the median's deviation is below `target`, or when `budget_s` is spent, or at `most`
// After nvbench's discipline (warm-up, then sampling to a noise threshold with a timeout).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace stepcast::executor {

struct SamplingRule {
  std::size_t least = 5;
  std::size_t most = 200;
  double target = 0.005;   // [1] of the median
  double budget_s = 1.0;   // of a point
};

struct Spread {
  double median_s = 0.0;
  double relative = 0.0;   // of one sample
};
// Requires: not empty.
Spread spread_of(std::span<const double> seconds);

bool has_enough(std::span<const double> seconds, const SamplingRule& rule);

}  // namespace stepcast::executor
