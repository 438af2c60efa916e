#include <doctest/doctest.h>

#include "sim/base/random.hpp"

using namespace stepcast;

TEST_SUITE_BEGIN("unit");

TEST_CASE("random: a stream depends on seed, purpose and entity only") {
  CHECK(Rng(1, "straggler", 3).next() == Rng(1, "straggler", 3).next());
  CHECK(Rng(1, "straggler", 3).next() != Rng(1, "straggler", 4).next());
  CHECK(Rng(1, "straggler", 3).next() != Rng(1, "jitter", 3).next());
  CHECK(Rng(1, "straggler", 3).next() != Rng(2, "straggler", 3).next());
}

// 10,000 draws below 10: each bin expects 1000 with standard deviation 30; +-150 is five of them.
TEST_CASE("random: below() is uniform") {
  Rng rng(7, "test");
  int bins[10] = {};
  for (int i = 0; i < 10'000; ++i) ++bins[rng.below(10)];
  for (const int count : bins) CHECK(std::abs(count - 1000) < 150);
}

TEST_SUITE_END();
