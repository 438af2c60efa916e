// sim/scenario/check.hpp — what keys demand of each other, as far as the scenario alone can tell.
// The catalogue and the model bring more checks; they use Positions in the same way.
#pragma once

#include <cstdint>
#include <string>

#include "sim/base/diagnostic.hpp"
#include "sim/scenario/positions.hpp"
#include "sim/scenario/scenario.hpp"

namespace stepcast::scenario {

// Every combination that cannot be, or is not modelled in this version. Each names both keys.
void check_scenario(const Scenario& scenario, const Positions& where, Diagnostics& diagnostics);

// tp x pp x dp x cp workers against the GPUs of the cluster. `origin` says where the GPUs
// a node come from: "cluster.gpus_per_node, line 4" or "dgx-h100".
void check_worker_count(const Scenario& scenario, const Positions& where, std::int64_t gpus_per_node,
                        const std::string& origin, Diagnostics& diagnostics);

}  // namespace stepcast::scenario
