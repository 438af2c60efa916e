// app/calibrate/point_calibration.hpp — `stepcast calibrate --db` from points of `stepcast measure`: kernels by kernel_fit.hpp; what else moves bytes as
// a latency and a bandwidth; how workers at once slow each other.
// Model    cost: t = latency + bytes / bandwidth, robustly (robust_fit.hpp)                                             (1)
//          slowdown: the median over points of the time of N workers at once over one worker's of the same kernel       (2)
// Valid    points of one machine   Ignores  protocols and channels of collectives (calibrate --nccl-logs has those), caches in (1)
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/calibrate/stored_points.hpp"
#include "app/scenario/hardware_shelf.hpp"
#include "calibration/kernel_fit.hpp"

namespace stepcast::app {

struct PointRequest {
  std::optional<std::string> gpu;      // default: cpu-host for points of CPUs
  std::optional<std::string> machine;  // where the database has several
  int folds = 5;
};

struct CostFit {
  calibration::MeasuredCost cost;
  std::size_t points = 0;
  double median_error = 0;             // [1]
};

struct PointCalibration {
  std::string gpu;
  std::string machine;
  std::size_t points = 0;              // all of that machine
  std::size_t kernels = 0;             // fitted by the GPU model
  std::vector<std::string> outliers;   // names of kernels without a say
  std::vector<std::string> throttled;  // names: every sample
  std::size_t throttled_samples = 0;
  std::vector<std::string> other;      // names: not fitted by anything
  calibration::ErrorsByPart before;    // with the profile as it is
  calibration::KernelFit fit;
  calibration::HeldOut held;
  std::vector<CostFit> costs;
};

// Throws UserError: no points, several machines and none named, kernels that the GPU cannot run, an unknown GPU.
PointCalibration calibrate_points(const HardwareShelf& shelf, std::vector<StoredPoint> points, const PointRequest& request);

std::string point_calibration_text(const PointCalibration& calibration);
std::string point_calibration_json(const PointCalibration& calibration);

}  // namespace stepcast::app
