// executor/common/measure.hpp — a plan whose instructions are points to measure, each for itself: those that share a `layer` are one point and
// run at once, on their streams. A point is repeated until its median is known (common/sampling.hpp); all workers stop together.
#pragma once

#include <functional>

#include "executor/common/device.hpp"
#include "executor/common/record_file.hpp"
#include "executor/common/sampling.hpp"
#include "executor/common/together.hpp"

namespace stepcast::executor {

using Readings = std::vector<std::pair<std::string, double>>;  // "clock_mhz", "power_w": as found

// Appends a block a point: a step for each sample, with what `readings` says then. Points of kernels and copies alone are queued before they
// start (Device::hold). What the device cannot compute is left out, as a fact "left out NAME" with the reason.
void measure_points(const plan::Program& program, Device& device, Together& together, const SamplingRule& rule, std::int64_t clock_offset_ns,
                    const std::function<Readings()>& readings, RecordWriter& records);

}  // namespace stepcast::executor
