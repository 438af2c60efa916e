// models/parallel/planner.hpp — a model and a strategy become a plan: one program a pipeline stage.
//
// Model    Megatron-LM tensor and pipeline parallelism (Shoeybi et al. 2019; Narayanan et al. 2021),
//          ZeRO and FSDP data parallelism (Rajbhandari et al. 2020; Zhao et al. 2023). Blocks come from
//          models/workload; this folder decides who runs which, in which order, beside what.
// Streams  compute; tp, cp, ep (overlapped collectives of blocks; the others block compute); pp.send,
//          pp.recv, or one for each neighbour (pipeline_port.hpp);
//          dp (ZeRO 0-2) or dp.gather, dp.reduce (ZeRO-3)
// Ignores  scaling the gradients after the clip norm
//          (fused into the update); loss scaling of fp16; checks for non-finite values
// Tests    unit/planner_*_test, property/planner_test
#pragma once

#include <string>
#include <vector>

#include "models/parallel/strategy.hpp"
#include "models/workload/model_shape.hpp"
#include "sim/plan/plan.hpp"

namespace stepcast::parallel {

// A combination that cannot run. Paths are those of the scenario ("parallel.tp", "model.heads"), so
// that the caller can point at both places.
struct StrategyError {
  std::string path;
  std::string other_path;  // may be empty
  std::string problem;
  std::string expected;
  std::string got;
};

// All problems, in the order of the keys; empty: make_plan accepts.
std::vector<StrategyError> check(const workload::ModelShape& shape, const Strategy& strategy);

// Requires: check(shape, strategy) is empty.
plan::Plan make_plan(const workload::ModelShape& shape, const Strategy& strategy);

}  // namespace stepcast::parallel
