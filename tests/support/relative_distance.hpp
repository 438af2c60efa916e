// tests/support/relative_distance.hpp — how far an array is from another, as a share of the other's norm.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

namespace stepcast::test {

// |a - b| / |b|, Euclidean. Not a number where `a` holds one, which passes no comparison. Requires: as long as each other.
template <class A, class B>
double relative_distance(const std::vector<A>& a, const std::vector<B>& b) {
  double difference = 0.0;
  double size = 1e-30;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double d = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    difference += d * d;
    size += static_cast<double>(b[i]) * static_cast<double>(b[i]);
  }
  return std::sqrt(difference / size);
}

}  // namespace stepcast::test
