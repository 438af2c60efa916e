// app/network/collective_cases.hpp — which log was measured on which cluster: a table (calibration/data/nccl_logs.csv) whose
// rows pair a log with a cluster of the catalogue and a part in the fit, and the points that follow.
//
// Parts    fit: the family's figures are fitted to it; held: forecast only; half: every other size is fitted, the rest held
//          (families of one log); outlier: the source says that the cluster is set up wrongly, so its error counts nowhere.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "app/network/collective_machine.hpp"
#include "calibration/collective_fit.hpp"

namespace stepcast::app {

enum class CasePart : std::uint8_t { kFit, kHeld, kHalf, kOutlier };

struct CollectiveCase {
  std::string family;
  CasePart part = CasePart::kHeld;
  std::string log;                   // file name without .log; "table:SYSTEM[@VERSION]" of the table of small systems
  std::string collective;            // nccl-tests' name; of a table: only its rows of this name; empty: all
  std::int64_t ranks = 0;
  std::int64_t gpus_per_process = 1; // 0: calls from a graph
  std::string cluster;               // the value of `cluster:`, in flow form
  std::string communication;         // of `communication:`, what the log says was fixed: "{algorithm: ring, channels: 2}"
  std::string remark;                // what is known of a miss, a forecast more than 15 % off at 1 MiB and up

  [[nodiscard]] std::string scenario() const;  // YAML of cluster and communication
  [[nodiscard]] std::string label() const;     // the log; of a part of a table, with the collective
};

std::vector<CollectiveCase> read_cases(const std::string& file);

struct CasePoints {
  CollectiveCase what;
  std::vector<calibration::CollectivePoint> points;   // sizes as measured, none of size 0
  std::vector<bool> fitted;                           // by point
  calibration::Figures figures;                       // that the profiles give its cluster
};

// Logs lie in `folder`/nccl_logs, the table is `folder`/nccl_table.csv. Throws UserError.
CasePoints points_of(const CollectiveCase& what, const std::string& folder, const HardwareShelf& shelf, std::size_t number);

// Every other point of a log is fitted, the rest held.
bool every_other(std::size_t index);

// A call on idle links of the cluster, nothing measured.
calibration::CollectivePoint cluster_point(const CollectiveMachine& cluster, plan::CollectiveKind kind, std::int32_t ranks, Bytes bytes);

// Median of |forecast / measured - 1| over points of 1 MiB and up, or below.
struct CaseErrors {
  std::size_t large = 0;             // points
  double large_median = 0.0;
  std::size_t small = 0;
  double small_median = 0.0;
};
enum class Take : std::uint8_t { kAll, kFitted, kHeld };
CaseErrors errors_of(const CasePoints& points, const calibration::Figures& figures, Take take = Take::kAll);

// "4.9 % (2 logs, worst 7.1 %)": the median and worst of the cases' medians at 1 MiB and up, outliers left out.
std::string medians_text(std::span<const CasePoints> cases, const calibration::Figures& figures, Take take);

// A line for each family: the median and the worst of its logs' medians at 1 MiB and up, and of those below, over what no fit saw
// (held, and the held half of half); outliers left out. `figures`: of each case. Floors of the project: 12 % and 25 %.
std::string families_text(std::span<const CasePoints> cases, std::span<const calibration::Figures> figures);

// "family  part  log  points  median error >= 1 MiB  below  remark", one line a case.
std::string case_line(const CasePoints& points, const calibration::Figures& figures);

}  // namespace stepcast::app
