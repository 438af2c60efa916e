// models/network/crc.hpp — cyclic redundancy checks of up to 32 bits, as switches use them to hash.
// Model    Remainder of the message times x^width, divided by the polynomial over GF(2), in the
//          five-parameter description: polynomial, initial register, bits of each byte and of the register
//          reflected or not, and what is XORed on at the end.
//          Linear: crc(a) ^ crc(b) depends on a ^ b only, whatever the initial register.            (1)
// Source   R. Williams, "A painless guide to CRC error detection algorithms" (1993); polynomials: CRC-16
//          BISYNC 0x8005, CRC-16 CCITT (ITU-T V.41) 0x1021, CRC-32 (IEEE 802.3) 0x04C11DB7
// Ignores  widths other than 8 to 32
// Tests    unit/network_hash_test: check values of "123456789"; a bitwise division as oracle
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace stepcast::network {

struct CrcModel {
  int width = 32;
  std::uint32_t polynomial = 0;
  std::uint32_t initial = 0;
  bool reflected = false;   // bytes in and register out
  std::uint32_t final_xor = 0;
};

class Crc {
 public:
  explicit constexpr Crc(const CrcModel& model) : model_{model} {
    for (std::uint32_t byte = 0; byte < 256; ++byte) table_[byte] = divide(byte);
  }

  // `seed` is XORed on the initial register.
  [[nodiscard]] constexpr std::uint32_t of(std::span<const std::uint8_t> bytes, std::uint32_t seed = 0) const {
    std::uint32_t r = (model_.initial ^ seed) & mask();
    if (model_.reflected) {
      r = reflect(r, model_.width);
      for (const std::uint8_t byte : bytes) r = table_[(r ^ byte) & 0xff] ^ (r >> 8);
    } else {
      for (const std::uint8_t byte : bytes) r = (table_[((r >> (model_.width - 8)) ^ byte) & 0xff] ^ (r << 8)) & mask();
    }
    return r ^ model_.final_xor;
  }

  [[nodiscard]] constexpr int width() const { return model_.width; }

 private:
  [[nodiscard]] constexpr std::uint32_t mask() const { return UINT32_MAX >> (32 - model_.width); }

  static constexpr std::uint32_t reflect(std::uint32_t value, int width) {
    std::uint32_t mirror = 0;
    for (int bit = 0; bit < width; ++bit) mirror |= ((value >> bit) & 1U) << (width - 1 - bit);
    return mirror;
  }

  // What a byte at the register's top does to it in eight steps.
  [[nodiscard]] constexpr std::uint32_t divide(std::uint32_t byte) const {
    std::uint32_t r = (model_.reflected ? reflect(byte, 8) : byte) << (model_.width - 8);
    const std::uint32_t top = 1U << (model_.width - 1);
    for (int step = 0; step < 8; ++step) r = (r & top) != 0 ? (r << 1) ^ model_.polynomial : r << 1;
    r &= mask();
    return model_.reflected ? reflect(r, model_.width) : r;
  }

  CrcModel model_;
  std::array<std::uint32_t, 256> table_{};
};

inline constexpr Crc kBisyncCrc{{.width = 16, .polynomial = 0x8005, .reflected = true}};  // also CRC-16/ARC
inline constexpr Crc kCcittCrc{{.width = 16, .polynomial = 0x1021, .initial = 0xffff}};
inline constexpr Crc kIeeeCrc{
    {.width = 32, .polynomial = 0x04c11db7, .initial = 0xffffffff, .reflected = true, .final_xor = 0xffffffff}};

}  // namespace stepcast::network
