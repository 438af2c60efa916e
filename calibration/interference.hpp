// calibration/interference.hpp — what a profile's `interference` changes of a forecast.
// Model    kernels of a host whose workers all run take their time alone times the measured slow-down of their kind (products,
//          streams, ...) at that number of workers; kernels beside a collective, times the slow-down of products there  (1)
// Source   the points of `stepcast measure`: the same kernels on one worker and on several at once, products beside collectives
// Valid    as many workers as were measured; other numbers take the largest measured that is not more, and forecasts say so
// Ignores  workers that do something else meanwhile; slow-downs below 1 beside collectives (noise); copies beside kernels
// Tests    unit/interference_test
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "calibration/profile.hpp"
#include "models/gpu/gpu_parameters.hpp"

namespace stepcast::calibration {

// Of `workers` at once on a host. 1 everywhere where nothing was measured or there is one worker.
gpu::Crowding crowding_of(std::span<const Interference> measured, std::int64_t workers);

// The largest slow-down of products beside a collective, none below 1; empty where none was measured.
std::optional<double> beside_collective(std::span<const Interference> measured, std::int64_t workers);

// Workers that the figures above are of, where they are fewer than asked for.
std::optional<std::int64_t> measured_workers(std::span<const Interference> measured, std::int64_t workers);

}  // namespace stepcast::calibration
