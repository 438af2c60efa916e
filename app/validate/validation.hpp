// app/validate/validation.hpp — a forecast against a measured run of the database, instruction by instruction.
//
// Exact    A run of `stepcast run` has the plan's own instructions: of each worker and stream the n-th of a label, stage, layer and
//          micro-batch is the same instruction in plan, forecast and measurement. A message is timed from when both of its sides
//          have reached it, on both sides, as the simulator does: what comes before is waiting.
// By class A profile (kineto, nsys) knows kernels, not instructions: the median marked step of one worker is taken; classes of work are
//          compared by their sums, and one by one, in order, where both have as many.
// Symbols  F, M [s] sums of a group, the mean over workers; signed F/M - 1; absolute sum |f - m| / M over its instructions;
//          share M / measured step
// Phases   Of each worker's compute stream: kernels by stage, communication that it waits in, and the rest of the step (wait): they add
//          up to the step. Communication of other streams runs beside it and stands apart.
// Ignores  instructions that take no time; counters; steps other than the median one
// Tests    unit/validation_test, e2e/validate_test
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/cli/terminal.hpp"
#include "sim/plan/plan.hpp"
#include "sim/trace/record.hpp"

namespace stepcast::app {

struct ValidationRow {
  std::string name;
  std::size_t count = 0;                 // instructions compared; of sums alone: of the forecast
  std::optional<std::size_t> measured_count;  // where it differs
  double forecast_s = 0.0;
  double measured_s = 0.0;
  std::optional<double> absolute;        // [1]; empty: compared by sums alone

  [[nodiscard]] std::optional<double> signed_error() const;
};

struct ComparedInstruction {
  RankId worker;
  std::string stream;
  std::string name;
  std::string work;                      // "gemm", "tensor all_reduce"
  std::string stage;
  std::optional<std::uint16_t> layer, micro_batch;
  Duration forecast, measured;
  [[nodiscard]] double difference_s() const { return forecast.seconds() - measured.seconds(); }
};

struct Validation {
  std::string name;
  bool exact = true;
  double forecast_step_s = 0.0;
  double measured_step_s = 0.0;
  std::size_t workers = 0;               // compared
  std::size_t matched = 0;
  std::size_t forecast_count = 0;        // instructions of the forecast, of these workers
  std::size_t measured_count = 0;
  std::vector<ValidationRow> by_class, by_stream, by_phase, beside;  // most measured time first; phases in order
  std::vector<ComparedInstruction> worst;
  std::vector<std::string> notes;
  trace::Recording side_by_side;         // both origins

  [[nodiscard]] double step_error() const { return forecast_step_s / measured_step_s - 1.0; }
};

// `forecast` and `measured` are of this plan. Requires: measured_step_s > 0.
Validation validate_run(const plan::Plan& plan, double forecast_step_s, const trace::Recording& forecast, double measured_step_s, const trace::Recording& measured);

// `measured` is of a profiler. Throws UserError (without a place) where it marks no steps or none holds work.
Validation validate_profile(const plan::Plan& plan, double forecast_step_s, const trace::Recording& forecast, const trace::Recording& measured);

std::string validation_text(const Validation& validation, const Terminal& terminal);
nlohmann::ordered_json validation_json(const Validation& validation);

}  // namespace stepcast::app
