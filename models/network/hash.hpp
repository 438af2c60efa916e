// models/network/hash.hpp — which of k equal-cost next hops a switch hashes a flow to.
//
// Model    choice = rotate(h(key, seed), offset) mod k                                               (1)
//          h: a CRC of 16 bits or a half of CRC-32; the XOR of the key's 16-, 8- or 4-bit lanes; or an
//          ideal hash of 64 well mixed bits. A CRC's seed is XORed on its initial register, an XOR's on
//          its result; the ideal hash mixes it in.
//          CRC and XOR are linear over GF(2): another seed XORs a constant on h. Where k is a power of two a
//          seed therefore only renames the next hops, and two tiers with different seeds still
//          polarize; another function or other bits (offset) do not.                              (2)
//          Tiers with the same h and offset: of the flows that choice i mod k1 brings, a tier-2 switch
//          with k2 next hops uses k2 / gcd(k1, k2).                                               (3)
// Source   functions: Broadcom RTAG7 (two blocks of CRC16-BISYNC, CRC16-CCITT, CRC32 low and high half,
//          XOR16/8/4) and the SAI hash algorithms and offset; (2) Zhang et al., "Hashing linearity
//          enables relative path control in data centers", USENIX ATC 2021
// Valid    IPv4 RoCEv2 headers (flow_header.hpp)          Cost  O(key bytes)
// Ignores  RTAG7's pre-processing, macro-flow mode and its second block; resilient hashing
// Tests    unit/network_hash_test, property/path_choice_test (balls in bins, polarization)
#pragma once

#include <cstddef>
#include <cstdint>

#include "models/network/flow_header.hpp"

namespace stepcast::network {

enum class HashFunction : std::uint8_t { kIdeal, kCrc16Bisync, kCrc16Ccitt, kCrc32Low, kCrc32High, kXor16, kXor8, kXor4 };

// Bits that h has: 64, 16, 8 or 4.
int hash_width(HashFunction function);

std::uint64_t hash(HashFunction function, const HashKey& key, std::uint32_t seed);

// How one switch hashes.
struct SwitchHash {
  HashFunction function = HashFunction::kIdeal;
  std::uint32_t seed = 0;
  int offset = 0;  // bits that h is rotated to the right by
};

// Equation (1). Requires: candidates > 0.
std::size_t hashed_choice(const SwitchHash& how, const HashKey& key, std::size_t candidates);

}  // namespace stepcast::network
