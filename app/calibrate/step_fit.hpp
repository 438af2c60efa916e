// app/calibrate/step_fit.hpp — figures of a profile out of step times of training runs, where those are all that a user has: one set of figures a
// hardware family, shared by all its rows, fitted on a random part of the rows and tried on the rest.
//
// Model    calibration/robust_fit.hpp on step times, Huber's loss; priors are the profile's figures with their uncertainty
// Figures  kStepFigures (step_fit.cpp): host time of kernels, collectives, recomputed blocks and steps, what a collective waits beyond its
//          own time, the sustained clock, the memory bandwidth that kernels reach: what differs from one machine and software stack to
//          the next. Kernels' own efficiencies are left to `stepcast validate --kernels` and its tables
// Few      the fitted rows are dealt in five folds, each forecast by a fit to the other four: where that is not nearer in the mean than the profile as it
//          was, the profile stays (rows of several sites, or too few). Held-out rows have no say in it, nor had they in the choice of the loss (docs/accuracy.md)
// Untold   figures of whose variance the rows remove less than 5 % stay what they were
// Family   rows of one GPU of the catalogue (step_rows.hpp)
// Priors   figures of a GPU hold for another machine with it to 8 % at best, of a GPU that stands in for another to 30 %
// Rows     dealt by a random number of the row's name (row_deal.hpp)
// Profile  named after table and GPU; `stepcast validate --table T --fitted` finds it in calibration/profiles/machines/
// Ignores  figures of NICs: rows of several hosts are fitted with the network's profile as it is
// Cost     one forecast of each row, some thirty of the fitted ones, and a hundred more for the folds
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/scenario/hardware_shelf.hpp"
#include "app/validate/error_summary.hpp"
#include "calibration/profile.hpp"

namespace stepcast::app {

struct StepFitRequest {
  std::string file;                    // a table of training runs (calibration/truth_row.hpp)
  std::optional<std::string> family;   // a GPU of the catalogue; empty: all of the table's
  double share = 0.3;                  // [1] of a family's rows to fit
  std::uint64_t seed = 1;
  std::optional<std::string> date{};   // of the measurements, for the fitted figures
  unsigned threads = 1;                // rows forecast at a time; the result does not depend on it
};

struct StepFigure {
  std::string key;
  std::string before;                  // "38 us"
  std::string after;
  std::string plus_minus;
  double informed = 0;                 // [1] share of the prior's variance that the rows removed
};

struct StepFitRow {
  std::string id;
  bool fitted = false;
  bool complete = false;               // its table says that it states its whole set-up
  double measured_s = 0;
  double before_s = 0;                 // forecast with the profile as it was
  double after_s = 0;
};

struct StepFit {
  std::string family;
  calibration::Profile profile;        // with the fitted figures
  std::vector<StepFigure> figures;
  std::vector<StepFitRow> rows;
  double left_out = 0;                 // [1] mean error of the fitted rows, each by a fit that did not see it
  double left_out_before = 0;          // [1] with the profile as it was
  bool helps = true;                   // left_out is less
  [[nodiscard]] ErrorSummary errors(bool fitted, bool after) const;
};

struct StepFits {
  std::vector<StepFit> families;
  std::size_t rows = 0;                // of the table; with a family, its own and those that are refused
  ErrorSummary shipped;                // of all that have a forecast, families too small to fit as well, as profiles were
};

// `progress` is told what is being done. Throws UserError for a family that the table lacks, or one of too few rows.
StepFits fit_steps(const StepFitRequest& request, const HardwareShelf& shelf, const std::function<void(const std::string&)>& progress);

// Of all fits together; `only_complete`: of rows that state their whole set-up.
ErrorSummary errors_of(std::span<const StepFit> fits, bool fitted, bool after, bool only_complete = false);

std::string step_fit_text(const StepFits& fits);
nlohmann::ordered_json step_fit_json(const StepFits& fits);

}  // namespace stepcast::app
