#include "models/network/hash.hpp"

#include "models/network/crc.hpp"
#include "sim/base/check.hpp"
#include "sim/base/hash.hpp"

namespace stepcast::network {
namespace {

// XOR of the key's 16-bit lanes, most significant byte first; a last odd byte is a lane's high one.
std::uint32_t fold16(std::span<const std::uint8_t> bytes) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) sum ^= static_cast<std::uint32_t>(bytes[i]) << (i % 2 == 0 ? 8 : 0);
  return sum;
}

std::uint32_t fold8(std::span<const std::uint8_t> bytes) {
  const std::uint32_t sum = fold16(bytes);
  return (sum >> 8 ^ sum) & 0xff;
}

std::uint32_t fold4(std::span<const std::uint8_t> bytes) {
  const std::uint32_t sum = fold8(bytes);
  return (sum >> 4 ^ sum) & 0xf;
}

std::uint64_t mixed(std::span<const std::uint8_t> bytes, std::uint32_t seed) {
  std::uint64_t state = mix64(0x9e3779b97f4a7c15ULL ^ seed);
  for (const std::uint8_t byte : bytes) state = mix64(state + 0x9e3779b97f4a7c15ULL + byte);
  return state;
}

}  // namespace

int hash_width(HashFunction function) {
  switch (function) {
    case HashFunction::kIdeal: return 64;
    case HashFunction::kXor8: return 8;
    case HashFunction::kXor4: return 4;
    default: return 16;
  }
}

std::uint64_t hash(HashFunction function, const HashKey& key, std::uint32_t seed) {
  const std::span<const std::uint8_t> bytes = key.bytes();
  switch (function) {
    case HashFunction::kIdeal: return mixed(bytes, seed);
    case HashFunction::kCrc16Bisync: return kBisyncCrc.of(bytes, seed);
    case HashFunction::kCrc16Ccitt: return kCcittCrc.of(bytes, seed);
    case HashFunction::kCrc32Low: return kIeeeCrc.of(bytes, seed) & 0xffff;
    case HashFunction::kCrc32High: return kIeeeCrc.of(bytes, seed) >> 16;
    case HashFunction::kXor16: return fold16(bytes) ^ (seed & 0xffff);
    case HashFunction::kXor8: return fold8(bytes) ^ (seed & 0xff);
    case HashFunction::kXor4: return fold4(bytes) ^ (seed & 0xf);
  }
  SIM_CHECK(false, static_cast<int>(function));
  return 0;
}

std::size_t hashed_choice(const SwitchHash& how, const HashKey& key, std::size_t candidates) {
  SIM_CHECK(candidates > 0);
  std::uint64_t h = hash(how.function, key, how.seed);
  const int width = hash_width(how.function);
  if (const int by = how.offset % width; by != 0) {
    const std::uint64_t mask = UINT64_MAX >> (64 - width);
    h = (h >> by | h << (width - by)) & mask;
  }
  return static_cast<std::size_t>(h % candidates);
}

}  // namespace stepcast::network
