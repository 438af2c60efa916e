#include "sim/scenario/quantity.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "sim/base/text.hpp"

namespace stepcast::scenario {
namespace {

struct Unit {
  std::string_view text;
  Dimension dimension;
  double factor;       // to base units
  bool bits = false;
  bool alias = false;  // accepted, never printed
};

constexpr double kKi = 1024.0, kMi = kKi * kKi, kGi = kMi * kKi, kTi = kGi * kKi;

constexpr auto kUnits = std::to_array<Unit>({
    {"ps", Dimension::kDuration, 1.0}, {"ns", Dimension::kDuration, 1e3},
    {"us", Dimension::kDuration, 1e6}, {"ms", Dimension::kDuration, 1e9},
    {"s", Dimension::kDuration, 1e12}, {"min", Dimension::kDuration, 60e12},
    {"h", Dimension::kDuration, 3600e12}, {"d", Dimension::kDuration, 86400e12},
    {"B", Dimension::kBytes, 1.0}, {"kB", Dimension::kBytes, 1e3}, {"MB", Dimension::kBytes, 1e6},
    {"GB", Dimension::kBytes, 1e9}, {"TB", Dimension::kBytes, 1e12}, {"PB", Dimension::kBytes, 1e15},
    {"KiB", Dimension::kBytes, kKi}, {"MiB", Dimension::kBytes, kMi},
    {"GiB", Dimension::kBytes, kGi}, {"TiB", Dimension::kBytes, kTi},
    {"B/s", Dimension::kBandwidth, 1.0}, {"kB/s", Dimension::kBandwidth, 1e3},
    {"MB/s", Dimension::kBandwidth, 1e6}, {"GB/s", Dimension::kBandwidth, 1e9},
    {"TB/s", Dimension::kBandwidth, 1e12},
    {"KiB/s", Dimension::kBandwidth, kKi}, {"MiB/s", Dimension::kBandwidth, kMi},
    {"GiB/s", Dimension::kBandwidth, kGi}, {"TiB/s", Dimension::kBandwidth, kTi},
    {"kBps", Dimension::kBandwidth, 1e3, false, true}, {"MBps", Dimension::kBandwidth, 1e6, false, true},
    {"GBps", Dimension::kBandwidth, 1e9, false, true}, {"TBps", Dimension::kBandwidth, 1e12, false, true},
    {"b/s", Dimension::kBandwidth, 0.125, true}, {"kb/s", Dimension::kBandwidth, 125.0, true},
    {"Mb/s", Dimension::kBandwidth, 125e3, true}, {"Gb/s", Dimension::kBandwidth, 125e6, true},
    {"Tb/s", Dimension::kBandwidth, 125e9, true},
    {"bit/s", Dimension::kBandwidth, 0.125, true, true}, {"kbit/s", Dimension::kBandwidth, 125.0, true, true},
    {"Mbit/s", Dimension::kBandwidth, 125e3, true, true}, {"Gbit/s", Dimension::kBandwidth, 125e6, true, true},
    {"Tbit/s", Dimension::kBandwidth, 125e9, true, true},
    {"bps", Dimension::kBandwidth, 0.125, true, true}, {"kbps", Dimension::kBandwidth, 125.0, true, true},
    {"Mbps", Dimension::kBandwidth, 125e3, true, true}, {"Gbps", Dimension::kBandwidth, 125e6, true, true},
    {"Tbps", Dimension::kBandwidth, 125e9, true, true},
    {"FLOP", Dimension::kFlops, 1.0}, {"GFLOP", Dimension::kFlops, 1e9}, {"TFLOP", Dimension::kFlops, 1e12},
    {"PFLOP", Dimension::kFlops, 1e15}, {"EFLOP", Dimension::kFlops, 1e18},
    {"FLOP/s", Dimension::kFlopRate, 1.0}, {"MFLOP/s", Dimension::kFlopRate, 1e6},
    {"GFLOP/s", Dimension::kFlopRate, 1e9}, {"TFLOP/s", Dimension::kFlopRate, 1e12},
    {"PFLOP/s", Dimension::kFlopRate, 1e15}, {"EFLOP/s", Dimension::kFlopRate, 1e18},
    {"GFLOPS", Dimension::kFlopRate, 1e9, false, true}, {"TFLOPS", Dimension::kFlopRate, 1e12, false, true},
    {"PFLOPS", Dimension::kFlopRate, 1e15, false, true},
    {"Hz", Dimension::kFrequency, 1.0}, {"kHz", Dimension::kFrequency, 1e3},
    {"MHz", Dimension::kFrequency, 1e6}, {"GHz", Dimension::kFrequency, 1e9},
    {"mW", Dimension::kPower, 1e-3}, {"W", Dimension::kPower, 1.0}, {"kW", Dimension::kPower, 1e3},
    {"MW", Dimension::kPower, 1e6},
    {"J", Dimension::kEnergy, 1.0}, {"kJ", Dimension::kEnergy, 1e3}, {"MJ", Dimension::kEnergy, 1e6},
    {"GJ", Dimension::kEnergy, 1e9}, {"Wh", Dimension::kEnergy, 3600.0}, {"kWh", Dimension::kEnergy, 3.6e6},
    {"MWh", Dimension::kEnergy, 3.6e9},
    {"K", Dimension::kTemperature, 1.0},
    {"USD", Dimension::kMoney, 1.0},
});

struct DimensionText {
  const char* name;
  const char* examples;
  const char* first_example;
};

DimensionText text_of(Dimension dimension) {
  switch (dimension) {
    case Dimension::kDuration: return {"a time", "2 us or 1.5 ms", "2 us"};
    case Dimension::kBytes: return {"a size in bytes", "80 GiB or 80 GB", "80 GiB"};
    case Dimension::kBandwidth: return {"a bandwidth", "400 Gb/s (bits) or 50 GB/s (bytes)", "400 Gb/s"};
    case Dimension::kFlops: return {"a number of operations", "2 TFLOP", "2 TFLOP"};
    case Dimension::kFlopRate: return {"a compute rate", "989 TFLOP/s", "989 TFLOP/s"};
    case Dimension::kFrequency: return {"a frequency", "1.98 GHz", "1.98 GHz"};
    case Dimension::kPower: return {"a power", "700 W", "700 W"};
    case Dimension::kEnergy: return {"an energy", "1.2 kWh or 300 J", "1.2 kWh"};
    case Dimension::kTemperature: return {"a temperature", "340 K", "340 K"};
    case Dimension::kMoney: return {"an amount of money", "2.5 USD", "2.5 USD"};
  }
  return {"", "", ""};
}

std::string lower(std::string_view text) {
  std::string out{text};
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

const Unit* find_unit(std::string_view text) {
  const auto found = std::find_if(kUnits.begin(), kUnits.end(), [&](const Unit& u) { return u.text == text; });
  return found == kUnits.end() ? nullptr : &*found;
}

// Sizes in bits exist in people's heads only: Gb, Gbit, Mb.
bool is_bit_size(std::string_view unit) {
  return unit == "b" || unit == "bit" || unit.ends_with("bit") ||
         (unit.size() == 2 && unit[1] == 'b' && std::string_view{"kKMGTP"}.find(unit[0]) != std::string_view::npos);
}

QuantityError unknown_unit(std::string_view number, std::string_view unit, Dimension wanted) {
  QuantityError error{fmt::format("unknown unit '{}'", unit), {}};
  if (is_bit_size(unit) && wanted == Dimension::kBytes) {
    error.problem = fmt::format("'{}' are bits, and a size is in bytes", unit);
    error.hint = fmt::format("write {0} {1}B for bytes, or divide the bits by 8", number, unit.substr(0, unit.find('b')));
    return error;
  }
  std::vector<std::string> same_letters;  // case apart
  std::vector<std::string> spellings;
  for (const Unit& u : kUnits) {
    if (u.dimension != wanted) continue;
    spellings.emplace_back(u.text);
    if (lower(u.text) == lower(unit)) same_letters.emplace_back(u.text);
  }
  if (same_letters.size() == 2 && wanted == Dimension::kBandwidth) {
    const bool first_bits = find_unit(same_letters[0])->bits;
    error.hint = fmt::format("did you mean '{} {}' (bits) or '{} {}' (bytes)?", number,
                             same_letters[first_bits ? 0 : 1], number, same_letters[first_bits ? 1 : 0]);
  } else if (!same_letters.empty()) {
    error.hint = fmt::format("did you mean '{} {}'? capital letters matter", number, same_letters.front());
  } else if (wanted == Dimension::kBandwidth && (find_unit(std::string{unit} + "/s") != nullptr || is_bit_size(unit))) {
    error.hint = fmt::format("did you mean '{} {}/s'?", number, unit);
  } else if (const auto near = nearest_word(unit, spellings); near && unit.size() > 2) {
    error.hint = fmt::format("did you mean '{} {}'?", number, *near);
  }
  return error;
}

QuantityError wrong_dimension(std::string_view number, const Unit& unit, Dimension wanted) {
  QuantityError error{fmt::format("{} where {} belongs", text_of(unit.dimension).name, text_of(wanted).name), {}};
  if (wanted == Dimension::kBandwidth && unit.dimension == Dimension::kBytes) {
    error.hint = fmt::format("did you mean '{} {}/s'?", number, unit.text);
  } else if (wanted == Dimension::kFlopRate && unit.dimension == Dimension::kFlops) {
    error.hint = fmt::format("did you mean '{} {}/s'?", number, unit.text);
  } else if (wanted == Dimension::kBytes && unit.dimension == Dimension::kBandwidth && !unit.bits) {
    error.hint = fmt::format("did you mean '{} {}'?", number, unit.text.substr(0, unit.text.find('B') + 1));
  }
  return error;
}

}  // namespace

ParsedQuantity parse_quantity(std::string_view text, Dimension wanted) {
  text = trim(text);
  if (const auto bare = parse_number(text)) {
    if (*bare == 0.0) return {0.0, {}};
    return {std::nullopt, {"no unit", {}}};
  }
  // The longest number that starts the text, and the unit after it.
  double value = 0.0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  const auto length = static_cast<std::size_t>(end - text.data());
  const std::string_view number = text.substr(0, length);
  if (status != std::errc{} || !parse_number(number)) return {std::nullopt, {"not a number with a unit", {}}};
  const std::string_view unit = trim(text.substr(length));
  const Unit* found = find_unit(unit);
  if (found == nullptr) return {std::nullopt, unknown_unit(number, unit, wanted)};
  if (found->dimension != wanted) return {std::nullopt, wrong_dimension(number, *found, wanted)};
  const double base = value * found->factor;
  if (!std::isfinite(base)) return {std::nullopt, {"too large", {}}};
  return {base, {}};
}

std::string describe_dimension(Dimension dimension) {
  const DimensionText text = text_of(dimension);
  return fmt::format("{} such as {}", text.name, text.examples);
}

std::string example_of(Dimension dimension) { return text_of(dimension).first_example; }

std::string print_quantity(double base, Dimension dimension) {
  if (base == 0.0) return "0";
  std::string best;
  for (const Unit& unit : kUnits) {
    if (unit.dimension != dimension || unit.alias) continue;
    for (const double scaled : {base / unit.factor, std::round(base / unit.factor)}) {
      if (scaled * unit.factor != base) continue;
      const std::string text = fmt::format("{} {}", scaled, unit.text);
      const bool plain = text.find('e') == std::string::npos;
      const bool best_plain = best.find('e') == std::string::npos;
      if (best.empty() || (plain && !best_plain) || (plain == best_plain && text.size() < best.size())) best = text;
    }
  }
  return best;
}

std::vector<std::string> unit_spellings(Dimension dimension) {
  std::vector<std::string> out;
  for (const Unit& unit : kUnits) {
    if (unit.dimension == dimension) out.emplace_back(unit.text);
  }
  return out;
}

}  // namespace stepcast::scenario
