// sim/scenario/quantity.hpp — "400 Gb/s", "1.5 us", "80 GiB": a number and its unit. A unit is
// always written (0 excepted), case matters, G is 1e9 and Gi is 2^30, bits and bytes are told apart
// and never guessed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stepcast::scenario {

enum class Dimension : std::uint8_t {
  kDuration, kBytes, kBandwidth, kFlops, kFlopRate, kFrequency, kPower, kEnergy, kTemperature, kMoney
};

struct QuantityError {
  std::string problem;  // "no unit", "a time where a bandwidth belongs", ...
  std::string hint;
};

// Either a value in base units (SI, bits as bytes; picoseconds for times, which keeps them exact) or
// an error.
struct ParsedQuantity {
  std::optional<double> base;
  QuantityError error;
};
ParsedQuantity parse_quantity(std::string_view text, Dimension wanted);

// "a bandwidth such as 400 Gb/s or 50 GB/s"
std::string describe_dimension(Dimension dimension);
std::string example_of(Dimension dimension);

// The shortest text that parse_quantity reads back to exactly `base` (in base units).
std::string print_quantity(double base, Dimension dimension);

// Every accepted spelling of the dimension's units, for the schema.
std::vector<std::string> unit_spellings(Dimension dimension);

}  // namespace stepcast::scenario
