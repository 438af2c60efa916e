// models/parallel/schedule_picture.hpp — a schedule as text: when each stage runs which pass, and what
// that costs in idle time and memory.
#pragma once

#include <string>

#include "models/parallel/timeline.hpp"

namespace stepcast::parallel {

// One row a stage, one cell a unit of time (long passes fill several); then a table of idle time and of
// live activations by stage. Ignores transfers and real costs, as Timeline does.
std::string draw_schedule(const std::vector<ActionList>& lists, const Placement& placement, const PassCosts& costs = {});

}  // namespace stepcast::parallel
