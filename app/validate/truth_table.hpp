// app/validate/truth_table.hpp — a table of published training runs against forecasts: one scenario a row, the
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

#include "app/calibrate/row_deal.hpp"
#include "app/scenario/hardware_shelf.hpp"
#include "app/validate/error_summary.hpp"
#include "app/validate/truth_memory.hpp"
#include "calibration/truth_row.hpp"
#include "sim/scenario/load.hpp"

namespace stepcast::app {

struct TruthOutcome {
  calibration::TruthRow row;
  std::string reason;                     // why it is refused; empty: ok
  std::optional<double> forecast_step_s;
  std::optional<ComparedMemory> memory;   // where the row prints some
  std::string fitted_on;                  // GPU of a profile that was fitted to a part of this table (TableOptions::fitted)
  bool seen = false;                      // by that fit
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

struct TableOptions {
  unsigned threads = 1;  // rows forecast at a time; the result does not depend on it
  bool fitted = false;   // with the shipped profile of the table's machines, where there is one for the row's GPU
};

// `progress` is told how many rows are done. Whether a shipped fit saw a row is dealt as it was for the fit: of a whole table.
std::vector<TruthOutcome> forecast_table(const std::string& file, const HardwareShelf& shelf, const TableOptions& options,
                                         const std::function<void(std::size_t done, std::size_t of)>& progress);

// What a row's table is called: its family, or the file's name without folder and ending.
std::string table_of(const calibration::TruthRow& row, const std::string& file);
// The profile of a table's machines with that GPU, fitted to a part of its rows: calibration/profiles/machines/NAME.yaml.
std::string machine_name(const std::string& table, const std::string& gpu);
// The row's scenario. Throws UserError. Requires: the row is not refused.
scenario::Loaded load_row(const calibration::TruthRow& row, const std::string& file, const HardwareShelf& shelf);
TruthSummary summarise(const std::vector<TruthOutcome>& outcomes);

// Lines of rows only for `worse_than` [1] and more of error, the worst first, where it is given; summaries are of all.
std::string truth_text(const std::vector<TruthOutcome>& outcomes, std::optional<double> worse_than = {});
nlohmann::ordered_json truth_json(const std::vector<TruthOutcome>& outcomes);

}  // namespace stepcast::app
