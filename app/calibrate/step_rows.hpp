// app/calibrate/step_rows.hpp — rows of a table of training runs that can be forecast, by GPU, and how long each takes under another profile.
//
// Left out  rows that are refused or have no step time
// Cost      plans of rows that are forecast again and again are kept (keep_plans), up to so many instructions. Clusters that have to be simulated worker by worker are so once, as profiles
//           were; under other profiles one worker a stage stands for them (estimated_step), times what that was off by
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "app/scenario/hardware_shelf.hpp"
#include "app/scenario/setup.hpp"
#include "calibration/profile.hpp"

namespace stepcast::app {

struct StepRow {
  scenario::Loaded loaded;
  std::string id;
  double measured_s = 0;
  double before_s = 0;          // forecast with profiles as they are
  bool complete = false;        // states its whole set-up
  double correction = 1.0;      // step_time() over estimated_step() as profiles are: 1 but for clusters whose workers differ
  std::optional<Setup> kept{};
};

struct StepFamily {
  std::string table;            // its family column, or the file's name
  calibration::Profile profile;
  bool own = true;              // the profile is this GPU's, none that stands in
  std::vector<StepRow> rows;
};

struct StepTable {
  std::map<std::string, StepFamily> families;  // by GPU of the catalogue
  std::size_t rows = 0;                        // of the table; with a family, its own and those that are refused
};

struct StepTableRequest {
  std::string file;
  std::optional<std::string> family;
  unsigned threads = 1;
};

StepTable read_step_table(const StepTableRequest& request, const HardwareShelf& shelf, const std::function<void(const std::string&)>& progress);

// So that step_with() need not make them again.
void keep_plans(const HardwareShelf& shelf, std::span<StepRow* const> rows, unsigned threads);

// [s]. Rows may be asked for side by side, one row may not.
double step_with(const HardwareShelf& shelf, StepRow& row, const calibration::Profile& profile);

}  // namespace stepcast::app
