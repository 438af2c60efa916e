// app/measure/measured_run.hpp — what the workers of a run measured, as people read it: step times, a trace, a row of the store.
//
// Step     from the first worker's begin to the last one's end; the run's figure is the median over the recorded steps, its trace that of
//          the median step.
// Worker   the one that ends last in that step; its compute stream says where the step went.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/cli/terminal.hpp"
#include "executor/common/record_file.hpp"
#include "sim/plan/plan.hpp"
#include "sim/trace/record.hpp"
#include "sim/trace/store.hpp"

namespace stepcast::app {

struct MeasuredPart {
  std::string name;  // "compute", "tensor all_reduce", "wait for pipeline", ...
  Duration time;
};

struct MeasuredRun {
  std::string name;
  std::string backend;                                     // "cpu"
  std::vector<Duration> steps;                             // recorded, in order
  std::vector<double> losses;                              // of each step, where a model learned
  std::size_t median = 0;                                  // index of the median step
  RankId last;                                             // the worker that ended last in it
  std::vector<MeasuredPart> parts;                         // of its compute stream, most time first; they add up to the step
  std::vector<std::pair<std::string, std::string>> facts;  // of rank 0
  std::vector<std::string> hosts;                          // distinct
  Bytes peak_memory;                                       // of the fullest worker, plan buffers
  trace::Recording recording;

  [[nodiscard]] Duration step() const { return steps[median]; }
};

// `records` by rank. Throws UserError where a worker's records are missing, incomplete or of another plan.
MeasuredRun measured_run(const plan::Plan& plan, const std::string& backend, const std::vector<executor::Records>& records);

std::string measured_text(const MeasuredRun& run, const plan::Plan& plan, const Terminal& terminal);
nlohmann::ordered_json measured_json(const MeasuredRun& run, const plan::Plan& plan);
// `scenario` is the effective scenario's text, `created` UTC.
trace::Run stored_measurement(const MeasuredRun& run, const plan::Plan& plan, const std::string& scenario, std::uint64_t seed, const std::string& created);

}  // namespace stepcast::app
