// sim/base/hash.hpp — 64-bit mixing for fingerprints and random streams (SplitMix64 finaliser,
// Steele et al. 2014). Not for security. Stable across machines and runs by construction.
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>

namespace stepcast {

constexpr std::uint64_t mix64(std::uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9ULL;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

// Order-sensitive running hash.
class Fingerprint {
 public:
  constexpr void add(std::uint64_t value) { state_ = mix64(state_ + 0x9e3779b97f4a7c15ULL + value); }
  constexpr void add(std::int64_t value) { add(static_cast<std::uint64_t>(value)); }
  constexpr void add(double value) { add(std::bit_cast<std::uint64_t>(value)); }
  constexpr void add(std::string_view text) {
    for (const char c : text) add(static_cast<std::uint64_t>(static_cast<unsigned char>(c)));
    add(static_cast<std::uint64_t>(text.size()));
  }
  [[nodiscard]] constexpr std::uint64_t value() const { return state_; }

 private:
  std::uint64_t state_ = 0x243f6a8885a308d3ULL;
};

}  // namespace stepcast
