// executor/common/fewer_workers.hpp — a plan for many workers on few processes: its distinct programs, one worker each. Kernels keep their
// sizes; who would have been alike is left out, and with them what they would have said to each other. Records say so.
#pragma once

#include <string>

#include "sim/plan/plan.hpp"

namespace stepcast::executor {

struct FewerWorkers {
  plan::Plan plan;
  std::string note;  // "2 of 16 stages (0, 15), one of 1024 workers each; ..."; empty: nothing was left out
};

// Keeps as many replicas as fit on all stages: data-parallel ones first, then the other axes. With fewer processes than stages, stages with
// programs of their own come first, evenly spread, and messages to stages that are gone are dropped. Requires: processes >= 1.
FewerWorkers on_fewer(const plan::Plan& plan, std::int32_t processes);

}  // namespace stepcast::executor
