// app/forecast/uncertainty.hpp — how far a forecast may be off because the figures behind it are: each figure of the profile and the catalogue is moved
// by one standard deviation, the step is simulated again, and the changes are added up as independent errors.
//
// Model    sigma_T^2 = sum over figures i of (T(x_i + sigma_i) - T(x))^2                                    (1)
// Symbols  T [s] step time; x_i a figure; sigma_i its deviation, as stated or by its kind of evidence (calibration/profile_parameters.hpp)
// Source   (1) first-order propagation with finite steps of one deviation: JCGM 100:2008, 5.1.2
// Valid    figures whose errors are independent; where x_i + sigma_i is beyond what the key allows, x_i - sigma_i
// Ignores  errors of the models themselves; counts (multiprocessors, tile sides); correlations between figures of one fit, whose errors partly cancel; figures of
//          cluster.other_gpus, cluster.networks and transports
// Tests    unit/uncertainty_test
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/forecast/forecast.hpp"
#include "app/scenario/setup.hpp"

namespace stepcast::app {

// Of one simulation; beyond it a band costs more than people wait for without asking.
inline constexpr std::uint64_t kUnaskedEvents = 100'000;

struct UncertaintyOptions {
  bool fold = true;
  unsigned threads = 0;  // 0: all cores. The result does not depend on it
};

// `base` is the step time that the setup gives.
Uncertainty propagate(const HardwareShelf& shelf, const scenario::Loaded& loaded, const Setup& setup, Duration base, const UncertaintyOptions& options);

// "18 of 63 figures matter; most: ..." for the summary, and the same as JSON.
std::string uncertainty_text(const Uncertainty& uncertainty, Duration step);

}  // namespace stepcast::app
