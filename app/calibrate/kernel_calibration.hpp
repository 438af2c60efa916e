// app/calibrate/kernel_calibration.hpp — `stepcast calibrate --kernels`: a GPU's figures from tables of single kernels, with the errors on
// shapes that the fit did not see.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "app/scenario/hardware_shelf.hpp"
#include "calibration/kernel_fit.hpp"

namespace stepcast::app {

struct KernelCalibration {
  std::string gpu;                                     // catalogue name
  std::string prior;                                   // the profile that it began from, and "(assumed)"
  std::size_t points = 0;                              // of the fit
  std::size_t outliers = 0;                            // of these, without a say
  calibration::KernelFit fit;
  calibration::HeldOut held;
  std::optional<calibration::ErrorsByPart> other_half; // of the shapes, where only one was fitted
};

struct KernelRequest {
  std::vector<std::string> tables;
  std::string gpu;                  // as the catalogue or the tables spell it
  int folds = 5;                    // 0: none held out
  std::optional<int> half;          // fit shapes that hash to it alone
  std::optional<std::string> date;  // of the fitted figures
  std::string source;               // of the fitted figures; empty: the tables' names
  std::string start;                // the profile whose figures the search begins from; empty: the GPU's own
  std::vector<std::string> kept;    // keys of figures that are fitted with the others, and stay in the profile as they are
};

// Throws UserError: unknown GPU, no row of it.
KernelCalibration calibrate_kernels(const HardwareShelf& shelf, const KernelRequest& request);

// Parts of what calibrations print.
std::string errors_text(const std::vector<std::pair<std::string, const calibration::ErrorsByPart*>>& rows);
std::string figures_text(const calibration::KernelFit& fit);
nlohmann::ordered_json errors_json(const calibration::ErrorsByPart& errors);
nlohmann::ordered_json figures_json(const calibration::KernelFit& fit);

std::string calibration_text(const KernelCalibration& calibration);
std::string calibration_json(const KernelCalibration& calibration);

}  // namespace stepcast::app
