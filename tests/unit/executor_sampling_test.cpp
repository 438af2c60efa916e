// When a measurement has seen enough, by hand.
#include <doctest/doctest.h>

#include <vector>

#include "executor/common/sampling.hpp"

using namespace stepcast::executor;

TEST_SUITE_BEGIN("unit");

// Median 10; deviations 1, 0, 1, 2, 90: their median is 1, so the spread is 1.4826 / 10, whatever the outlier.
TEST_CASE("sampling: spread is robust against an outlier") {
  const std::vector<double> seconds{9.0, 10.0, 11.0, 12.0, 100.0};
  const Spread spread = spread_of(std::vector<double>{9.0, 10.0, 10.0, 11.0, 100.0});
  CHECK(spread.median_s == 10.0);
  CHECK(spread.relative == doctest::Approx(0.14826));
  CHECK(spread_of(seconds).median_s == 11.0);
}

TEST_CASE("sampling: stops when the median is known, the budget spent, or the count reached") {
  const SamplingRule rule{.least = 5, .most = 50, .target = 0.01, .budget_s = 10.0};
  CHECK_FALSE(has_enough(std::vector<double>(4, 1e-3), rule));  // too few
  CHECK(has_enough(std::vector<double>(5, 1e-3), rule));        // no spread at all
  std::vector<double> noisy;
  for (int i = 0; i < 10; ++i) noisy.push_back(i % 2 == 0 ? 1e-3 : 2e-3);
  CHECK_FALSE(has_enough(noisy, rule));
  CHECK(has_enough(std::vector<double>{3.0, 4.0, 3.0, 4.0, 3.0}, rule));  // 17 s of 10
  for (int i = 0; i < 40; ++i) noisy.push_back(i % 2 == 0 ? 1e-3 : 2e-3);
  CHECK(has_enough(noisy, rule));
}
