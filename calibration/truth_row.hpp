// calibration/truth_row.hpp — a row of a table of published training runs becomes a scenario.
//
// What the row states is taken as it is. What it leaves out is filled by rules that hold for all rows
// and are listed with the result ("assumed"): never by a choice for one row. What the planner cannot
// express is refused with the reason.
// Columns  those of the truth tables (row_id, gpu, n_gpus, layers, ..., step_s); a table may leave out
//          any column but those in kRequiredColumns; other columns are ignored
//          Memory of a row that does not state its micro-batch is not compared
//          A row with a memory figure but no step time may leave out the number of GPUs and the global batch: neither
//          is what its memory depends on most
// Ignores  the printed phases, framework versions beyond the habits in kFrameworks (truth_row.cpp)
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "calibration/truth_memory.hpp"
#include "sim/base/csv.hpp"
#include "topologies/hardware.hpp"

namespace stepcast::calibration {

struct TruthRow {
  std::string id;
  std::string family;
  int line = 0;                          // of the table
  std::optional<double> step_s;          // measured, or derived from throughput by the table
  MemoryFigure memory;                   // peak of one GPU, where the row prints one
  std::string refusal;                   // why no scenario, empty otherwise
  std::string scenario;                  // YAML text
  bool complete = false;                 // the table says that the row states its whole set-up (column `complete`: 2)
  std::string machine;                   // profile of the machine that it ran on, where there is one; else the GPU's
  std::vector<std::string> assumed;      // what the row did not state
};

// Throws UserError for a table without the required columns and for a number that is not one.
std::vector<TruthRow> read_truth_table(const CsvTable& table, const topology::Catalogue& catalogue);

}  // namespace stepcast::calibration
