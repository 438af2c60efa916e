// app/truth_table.hpp — a table of published training runs against forecasts: one scenario a row, the
// error of each, and the summary. Rows that cannot be expressed are counted with their reason.
//
// error = (forecast - measured) / measured; MAPE is the mean of its absolute value over rows that have
// a measured step time and a forecast. Memory is compared with the like of what the row prints, and summed up by
// family (truth_memory.hpp).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/error_summary.hpp"
#include "app/hardware_shelf.hpp"
#include "app/truth_memory.hpp"
#include "calibration/truth_row.hpp"
#include "sim/scenario/load.hpp"

namespace stepcast::app {

struct TruthOutcome {
  calibration::TruthRow row;
  std::string reason;                     // why it is refused; empty: ok
  std::optional<double> forecast_step_s;
  std::optional<ComparedMemory> memory;   // where the row prints some
  [[nodiscard]] bool ok() const { return reason.empty(); }
  [[nodiscard]] std::optional<double> error_pct() const;
};

struct TruthSummary {
  std::size_t n = 0;
  std::size_t ok = 0;
  std::size_t refused = 0;
  ErrorSummary step;
  MemorySummary memory;
};

// `progress` is told how many rows are done. `threads` rows are forecast at a time; the result does
// not depend on it.
std::vector<TruthOutcome> forecast_table(const std::string& file, const HardwareShelf& shelf, unsigned threads,
                                         const std::function<void(std::size_t done, std::size_t of)>& progress);
// The row's scenario. Throws UserError. Requires: the row is not refused.
scenario::Loaded load_row(const calibration::TruthRow& row, const std::string& file, const HardwareShelf& shelf);
TruthSummary summarise(const std::vector<TruthOutcome>& outcomes);

std::string truth_text(const std::vector<TruthOutcome>& outcomes);
nlohmann::ordered_json truth_json(const std::vector<TruthOutcome>& outcomes);

}  // namespace stepcast::app
