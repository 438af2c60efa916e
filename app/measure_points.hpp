// app/measure_points.hpp — what `stepcast measure` measures on CPUs, as a plan whose instructions are points (executor/cpu/measure.hpp).
//
// One worker     matrix products (all three transpositions), attention, streams of several sizes and mixes, norms, softmax, loss, Adam,
//                copies, host Adam, NVMe
// Several        products and streams on all workers at once (shared caches and memory), collectives, messages to the next worker,
//                products beside a collective
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "sim/plan/plan.hpp"

namespace stepcast::app {

// Labels are the points' names. `quick`: few of each. Points named in `known` are left out; the plan may end up empty.
plan::Plan cpu_points(std::int32_t workers, bool quick, const std::set<std::string>& known);

}  // namespace stepcast::app
