// tests/support/random_values.hpp — operands of kernels under test: uniform in [-1, 1), the same for a seed.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/base/random.hpp"

namespace stepcast::test {

std::vector<float> random_values(std::integral auto count, std::uint64_t seed) {
  Rng rng{seed, "operands of kernels"};
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& v : values) v = static_cast<float>(rng.uniform(-1.0, 1.0));
  return values;
}

}  // namespace stepcast::test
