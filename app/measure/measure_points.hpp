// app/measure/measure_points.hpp — what `stepcast measure` measures, as plans whose instructions are points (point_plan.hpp).
//
// CPU, one worker   matrix products (all three transpositions), attention, streams of several sizes and mixes, norms, softmax, loss, Adam,
//                   copies, host Adam, NVMe
// CPU, several      products and streams on all workers at once (shared caches and memory), collectives, products beside a collective
// GPU, one worker   launches, products by format, attention by length and heads, streams, Adam, copies by direction and host memory, both ways
//                   at once, managed pages, products and streams beside copies, NVMe, kernels for half a second (clock and power as found)
// GPU, several      collectives, products beside them
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "sim/plan/plan.hpp"

namespace stepcast::app {

// `quick`: few of each. Points named in `known` are left out; the plan may end up empty.
plan::Plan cpu_points(std::int32_t workers, bool quick, const std::set<std::string>& known);
plan::Plan gpu_points(std::int32_t workers, bool quick, const std::set<std::string>& known);

// The longest kernels of gpu_points() again, named for the clock that was asked for.
plan::Plan clock_points(std::int64_t clock_mhz, const std::set<std::string>& known);

}  // namespace stepcast::app
