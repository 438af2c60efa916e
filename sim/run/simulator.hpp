// sim/run/simulator.hpp — plays a plan on a modelled cluster: every worker's streams, the collectives
// and messages where workers meet, and the network they share.
//
// Model    Streams run in order; a kernel starts when its stream is free and the host has issued it
//          (compiled_program.hpp). A collective starts moving when its last member has reached it and
//          its latency has passed; it ends for all members at once. A message moves when both sides
//          have posted it. Rates on the network are max-min fair (models/network).
//          Time a compute stream waits is charged to what it waited for; a pipeline receive counts as
//          bubble until the message starts to move and as exposed communication after that.
// Folding  With `fold`, one worker a pipeline stage stands for all that nothing can tell apart
//          (traffic.hpp); where something can, every worker is simulated and the result says why.
// Ignores  kernels slowed by communication beside them, stragglers, clock changes
// Tests    unit/run_test (worked by hand), property/run_property_test (folded = unfolded)
#pragma once

#include <cstdint>
#include <vector>

#include "sim/plan/plan.hpp"
#include "sim/run/machine.hpp"
#include "sim/run/result.hpp"

namespace stepcast::run {

struct SimulationOptions {
  bool fold = true;
  bool fold_unlike = false;    // where something can tell workers apart: one stands for all, at the pace of the slowest; an estimate
  bool memory = true;          // Result::memory
  std::vector<RankId> record;  // workers whose spans and counters go into Result::recording
  std::uint64_t max_events = UINT64_MAX;
};

// Requires: plan.world_size() <= GPUs of the fabric; the plan passes plan::check.
Result simulate(const plan::Plan& plan, const Machine& machine, const SimulationOptions& options);

}  // namespace stepcast::run
