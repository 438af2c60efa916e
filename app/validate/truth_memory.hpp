// app/validate/truth_memory.hpp — a forecast's peak memory beside a published one: the like with the like.
//
// Model    allocated  live buffers at the peak, rounded as the caching allocator rounds them
//          reserved   that and what the allocator holds besides
//          device     that, the context and the communicators
//          of the last stage's worker, or of the worker where that measure is highest
// Run that ran out of memory: the forecast agrees when the fullest worker does not fit.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/forecast/forecast.hpp"
#include "app/validate/error_summary.hpp"
#include "calibration/truth_memory.hpp"

namespace stepcast::app {

struct ComparedMemory {
  calibration::MemoryFigure measured;
  Bytes forecast;            // as measured.measure counts
  bool fits = true;          // the fullest worker, all of the device counted
  [[nodiscard]] std::optional<double> error_pct() const;
};

// Requires: figure.stated().
ComparedMemory compared_memory(const Forecast& forecast, const calibration::MemoryFigure& figure);

struct MemorySummary {
  ErrorSummary errors;
  std::size_t out_of_memory = 0;  // runs that did not fit
  std::size_t foreseen = 0;       // of them: forecast not to fit
};
MemorySummary sum_up(const std::vector<ComparedMemory>& rows);

// A line a family.
std::string memory_summary_text(const std::map<std::string, std::vector<ComparedMemory>>& by_family);
nlohmann::ordered_json to_json(const MemorySummary& summary);

}  // namespace stepcast::app
