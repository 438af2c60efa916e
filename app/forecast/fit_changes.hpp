// app/forecast/fit_changes.hpp — changes of a scenario that would make it fit, each forecast in full.
// Model    one change at a time, of those that spend time, network or machines to save memory: recomputation, smaller
//          micro-batches, more sharding, gradients in bf16, tensor or pipeline parallelism in place of replicas, twice
//          the nodes. Where none alone suffices, pairs of them. The batch stays the same, so the step does the same work
// Cost     one forecast a change
// Ignores  offload; changes of the model, the sequence or the GPU; more than two changes at once
// Tests    e2e/memory_test
#pragma once

#include <string>
#include <vector>

#include "app/forecast/forecast.hpp"
#include "app/scenario/hardware_shelf.hpp"

namespace stepcast::app {

struct FitChange {
  std::string title;               // "recompute full, micro-batch 1"
  std::vector<std::string> sets;   // for --set
  Bytes peak;                      // of the fullest worker
  double step_time_s = 0.0;
  double gpus = 0.0;               // over those of the scenario
  bool fits = false;
};

// Those that fit, cheapest in GPU time first; where none does, the one with the smallest peak alone.
// `sets`: what the command line changed already. Requires: the forecast does not fit.
std::vector<FitChange> changes_that_fit(const HardwareShelf& shelf, const std::string& scenario_file, const std::vector<std::string>& sets,
                                        const Forecast& forecast);

std::string fit_changes_text(const std::vector<FitChange>& changes, const Forecast& forecast);

}  // namespace stepcast::app
