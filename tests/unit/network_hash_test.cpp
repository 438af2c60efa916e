// Switch hashes: published check values, a bitwise oracle, the source-port rules by hand.
#include <doctest/doctest.h>

#include <array>
#include <string_view>
#include <vector>

#include "models/network/crc.hpp"
#include "models/network/hash.hpp"
#include "sim/base/random.hpp"

using namespace stepcast;
using namespace stepcast::network;

namespace {

std::vector<std::uint8_t> bytes_of(std::string_view text) { return {text.begin(), text.end()}; }

std::uint32_t check_value(const CrcModel& model) { return Crc{model}.of(bytes_of("123456789")); }

// Long division, one bit at a time, of the unreflected kind with a zero register.
std::uint32_t divide_bitwise(std::uint32_t polynomial, int width, std::span<const std::uint8_t> bytes) {
  std::uint64_t r = 0;
  const auto shift_in = [&](unsigned bit) {
    r = r << 1 | bit;
    if ((r >> width & 1) != 0) r ^= std::uint64_t{1} << width | polynomial;
  };
  for (const std::uint8_t byte : bytes)
    for (int b = 7; b >= 0; --b) shift_in(byte >> b & 1U);
  for (int b = 0; b < width; ++b) shift_in(0);
  return static_cast<std::uint32_t>(r);
}

FlowHeader example() {
  return {.source = 0x0a000001, .destination = 0x0a000102, .source_port = 0xC123, .destination_qp = 0x000456};
}

}  // namespace

TEST_SUITE_BEGIN("unit");

// The catalogue's check values for "123456789" (R. Williams' model; reveng's catalogue of CRCs).
TEST_CASE("hash: check values of the CRCs") {
  CHECK(check_value({.width = 16, .polynomial = 0x8005, .reflected = true}) == 0xBB3D);                          // ARC (BISYNC)
  CHECK(check_value({.width = 16, .polynomial = 0x8005}) == 0xFEE8);                                             // UMTS
  CHECK(check_value({.width = 16, .polynomial = 0x1021}) == 0x31C3);                                             // XMODEM
  CHECK(check_value({.width = 16, .polynomial = 0x1021, .initial = 0xffff}) == 0x29B1);                          // CCITT-FALSE
  CHECK(check_value({.width = 16, .polynomial = 0x1021, .reflected = true}) == 0x2189);                          // KERMIT
  CHECK(check_value({.width = 16, .polynomial = 0x1021, .initial = 0xffff, .reflected = true, .final_xor = 0xffff}) == 0x906E);
  CHECK(check_value({.width = 32, .polynomial = 0x04c11db7, .initial = 0xffffffff, .reflected = true, .final_xor = 0xffffffff}) ==
        0xCBF43926);                                                                                             // IEEE 802.3
  CHECK(check_value({.width = 32, .polynomial = 0x04c11db7, .initial = 0xffffffff}) == 0x0376E6E7);              // MPEG-2
  CHECK(kBisyncCrc.of(bytes_of("123456789")) == 0xBB3D);
  CHECK(kCcittCrc.of(bytes_of("123456789")) == 0x29B1);
  CHECK(kIeeeCrc.of(bytes_of("123456789")) == 0xCBF43926);
}

TEST_CASE("hash: tables agree with bitwise division") {
  Rng rng{3, "crc"};
  for (int round = 0; round < 200; ++round) {
    std::vector<std::uint8_t> bytes(1 + rng.below(40));
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(rng.below(256));
    CHECK(Crc{{.width = 16, .polynomial = 0x8005}}.of(bytes) == divide_bitwise(0x8005, 16, bytes));
    CHECK(Crc{{.width = 32, .polynomial = 0x04c11db7}}.of(bytes) == divide_bitwise(0x04c11db7, 32, bytes));
  }
}

// Lanes of example(): 0a00 0001 0a00 0102 C123 12B7 0011 | 0000 0456.
// XOR of the first seven: 0001 ^ 0102 = 0103, ^ C123 = C020, ^ 12B7 = D297, ^ 0011 = D286; ^ 0456 = D6D0.
TEST_CASE("hash: XOR folds by hand") {
  const HashKey tuple{example(), HashFields::kFiveTuple};
  const HashKey with_qp{example(), HashFields::kFiveTupleAndQp};
  CHECK(tuple.bytes().size() == 14);
  CHECK(with_qp.bytes().size() == 18);
  CHECK(hash(HashFunction::kXor16, tuple, 0) == 0xD286);
  CHECK(hash(HashFunction::kXor16, with_qp, 0) == 0xD6D0);
  CHECK(hash(HashFunction::kXor8, tuple, 0) == (0xD2 ^ 0x86));
  CHECK(hash(HashFunction::kXor4, tuple, 0) == (0xD ^ 0x2 ^ 0x8 ^ 0x6));
  CHECK(hash(HashFunction::kXor16, tuple, 0x1234) == (0xD286 ^ 0x1234));
  CHECK(hash(HashFunction::kCrc32Low, tuple, 0) == (kIeeeCrc.of(tuple.bytes()) & 0xffff));
  CHECK(hash(HashFunction::kCrc32High, tuple, 0) == kIeeeCrc.of(tuple.bytes()) >> 16);
}

// The whole 16 bits are rotated: D286 >> 4 is 6D28, and 6D28 mod 16 = 8.
TEST_CASE("hash: the offset picks other bits") {
  const HashKey key{example(), HashFields::kFiveTuple};
  CHECK(hashed_choice({.function = HashFunction::kXor16}, key, 16) == 0x6);
  CHECK(hashed_choice({.function = HashFunction::kXor16, .offset = 4}, key, 16) == 0x8);
  CHECK(hashed_choice({.function = HashFunction::kXor16, .offset = 4}, key, 1 << 16) == 0x6D28);
  CHECK(hashed_choice({.function = HashFunction::kXor16, .offset = 16}, key, 16) == 0x6);
  CHECK(hashed_choice({.function = HashFunction::kIdeal, .offset = 8}, key, 1) == 0);
}

// Property (2) of hash.hpp, which makes structured headers and other seeds less random than they look.
TEST_CASE("hash: CRC and XOR are linear, the ideal hash is not") {
  Rng rng{5, "linear"};
  const auto random_header = [&] {
    return FlowHeader{.source = static_cast<std::uint32_t>(rng.next()), .destination = static_cast<std::uint32_t>(rng.next()),
                      .source_port = static_cast<std::uint16_t>(rng.next()), .destination_qp = static_cast<std::uint32_t>(rng.below(1 << 24))};
  };
  const auto sum = [](FlowHeader a, const FlowHeader& b, const FlowHeader& c) {
    a.source ^= b.source ^ c.source;
    a.destination ^= b.destination ^ c.destination;
    a.source_port = static_cast<std::uint16_t>(a.source_port ^ b.source_port ^ c.source_port);
    a.destination_qp ^= b.destination_qp ^ c.destination_qp;
    return a;  // of three: the constant fields stay
  };
  int ideal_agrees = 0;
  for (int round = 0; round < 100; ++round) {
    const FlowHeader a = random_header(), b = random_header(), c = random_header();
    const auto h = [&](HashFunction f, const FlowHeader& header, std::uint32_t seed) {
      return hash(f, HashKey{header, HashFields::kFiveTupleAndQp}, seed);
    };
    for (const HashFunction f : {HashFunction::kCrc16Bisync, HashFunction::kCrc16Ccitt, HashFunction::kCrc32Low,
                                 HashFunction::kCrc32High, HashFunction::kXor16, HashFunction::kXor8, HashFunction::kXor4}) {
      CHECK(h(f, sum(a, b, c), 9) == (h(f, a, 9) ^ h(f, b, 9) ^ h(f, c, 9)));
      CHECK((h(f, a, 1) ^ h(f, a, 77)) == (h(f, b, 1) ^ h(f, b, 77)));  // a seed XORs a constant
    }
    const HashFunction ideal = HashFunction::kIdeal;
    ideal_agrees += h(ideal, sum(a, b, c), 9) == (h(ideal, a, 9) ^ h(ideal, b, 9) ^ h(ideal, c, 9)) ? 1 : 0;
  }
  CHECK(ideal_agrees == 0);
}

// fl = 0x12345: low 14 bits 0x2345, high 6 bits 0x10000 >> 14 = 4; 0x2345 ^ 4 = 0x2341.
// QPs 0x1000 and 0x2003: product 0x2003000; >> 20 is 0x20; 0x2003000 ^ 0x20 = 0x2003020, low 20 bits 0x03020.
TEST_CASE("hash: source ports and flow labels by hand") {
  CHECK(source_port_of_label(0) == 0xC000);
  CHECK(source_port_of_label(0x12345) == 0xE341);
  CHECK(source_port_of_label(0xFFFFF) == (0xC000 | (0x3FFF ^ 0x3F)));
  CHECK(flow_label_of_qps(0x1000, 0x2003) == 0x03020);
  CHECK(flow_label_of_qps(0x1000, 0x2003) == flow_label_of_qps(0x2003, 0x1000));
  // 0xFFFFFF squared = 0xFFFFFE000001; ^ (>> 20 = 0xFFFFFE0) = 0xFFFFF1FFFFE1; ^ (>> 40 = 0xFF) = 0xFFFFF1FFFF1E.
  CHECK(flow_label_of_qps(0xFFFFFF, 0xFFFFFF) == 0xFFF1E);
}

TEST_SUITE_END();
