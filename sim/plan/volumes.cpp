#include "sim/plan/volumes.hpp"

#include <cmath>

namespace stepcast::plan {

std::vector<double> zipf(std::size_t slots, double exponent) {
  std::vector<double> weights;
  weights.reserve(slots);
  for (std::size_t k = 1; k <= slots; ++k) weights.push_back(std::pow(static_cast<double>(k), -exponent));
  return weights;
}

}  // namespace stepcast::plan
