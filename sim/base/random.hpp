// sim/base/random.hpp — named random streams. Rng(run_seed, "straggler", rank) depends on nothing
// else, so adding a rank or a model never shifts another stream. Our own distributions: those of the
// standard library differ between implementations.
// Algorithm: SplitMix64 (Steele, Lea, Flood 2014); period 2^64.
#pragma once

#include <cstdint>
#include <string_view>

#include "sim/base/check.hpp"
#include "sim/base/hash.hpp"

namespace stepcast {

class Rng {
 public:
  Rng(std::uint64_t run_seed, std::string_view purpose, std::uint64_t entity = 0) {
    Fingerprint key;
    key.add(run_seed);
    key.add(purpose);
    key.add(entity);
    state_ = key.value();
  }

  std::uint64_t next() { return mix64(state_ += 0x9e3779b97f4a7c15ULL); }

  // Uniform in [0, 1), 53 bits.
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
  double uniform(double low, double high) { return low + (high - low) * uniform(); }

  // Uniform in [0, bound). Requires: bound > 0. Unbiased (rejection).
  std::uint64_t below(std::uint64_t bound) {
    SIM_CHECK(bound > 0);
    const std::uint64_t limit = bound * (UINT64_MAX / bound);
    std::uint64_t value = next();
    while (value >= limit) value = next();
    return value % bound;
  }

 private:
  std::uint64_t state_ = 0;
};

}  // namespace stepcast
