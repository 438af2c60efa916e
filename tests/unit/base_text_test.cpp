#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "sim/base/text.hpp"

using namespace stepcast;
using namespace stepcast::literals;

TEST_SUITE_BEGIN("unit");

TEST_CASE("text: nearest word is within max(2, len/3) edits and deterministic on ties") {
  const std::vector<std::string> words{"bandwidth", "latency", "name"};
  CHECK(nearest_word("bandwith", words) == "bandwidth");
  CHECK(nearest_word("nme", words) == "name");
  CHECK_FALSE(nearest_word("colour", words).has_value());
  const std::vector<std::string> tied{"tq", "tp"};
  CHECK(nearest_word("tx", tied) == "tp");
}

TEST_CASE("text: numbers are strict") {
  CHECK(parse_number("1.5") == 1.5);
  CHECK(parse_number("1e3") == 1000.0);
  CHECK(parse_number("-4") == -4.0);
  for (const char* bad : {"", "010", "0x10", ".5", "inf", "nan", "1 ", "1,5", "--1"}) {
    CAPTURE(bad);
    CHECK_FALSE(parse_number(bad).has_value());
  }
}

TEST_CASE("text: quantities for people") {
  CHECK(human_bytes(80_GiB) == "80.0 GiB");
  CHECK(human_bytes(0_B) == "0 B");
  CHECK(human_duration(1500_ns) == "1.50 us");
  CHECK(human_bit_rate(400_Gbps) == "400 Gb/s");
  CHECK(human_count(8.03e9) == "8.03 B");
}

TEST_CASE("text: split keeps empty fields, trim drops space") {
  CHECK(split("a,,b", ',') == std::vector<std::string>{"a", "", "b"});
  CHECK(trim("  x y\t\r\n") == "x y");
}

TEST_SUITE_END();
