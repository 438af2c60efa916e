#include "calibration/profile_parameters.hpp"

#include <fmt/format.h>

namespace stepcast::calibration {

double relative_uncertainty(topology::Basis basis) {
  switch (basis) {
    case topology::Basis::kMeasured: return 0.05;
    case topology::Basis::kDatasheet: return 0.02;
    case topology::Basis::kPublished: return 0.10;
    case topology::Basis::kAssumed: return 0.30;
  }
  return 0.30;
}

namespace detail {

std::string unit_of(scenario::Dimension dimension) {
  switch (dimension) {
    case scenario::Dimension::kDuration: return "s";
    case scenario::Dimension::kBytes: return "B";
    case scenario::Dimension::kBandwidth: return "B/s";
    case scenario::Dimension::kFlops: return "FLOP";
    case scenario::Dimension::kFlopRate: return "FLOP/s";
    case scenario::Dimension::kFrequency: return "Hz";
    case scenario::Dimension::kPower: return "W";
    case scenario::Dimension::kEnergy: return "J";
    case scenario::Dimension::kTemperature: return "K";
    case scenario::Dimension::kMoney: return "USD";
  }
  return "1";
}

std::string number_text(double value) { return fmt::format("{}", value); }

}  // namespace detail

}  // namespace stepcast::calibration
