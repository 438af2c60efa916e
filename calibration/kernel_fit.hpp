// calibration/kernel_fit.hpp — the figures of the GPU model out of measured kernels: few, physical, and none of a shape.
// Model    robust_fit.hpp on ln(forecast / measured), in stages, so that what one kind of kernel tells is not bent by another:
//            products, streams and reductions together; fp8 products; attention forward; attention backward         (1)
//          error on points that a fit did not see: of k folds by a hash of the point's name, and of a fit on the smaller half
//          of each kind's work that forecasts the larger                                                           (2)
//          plus_minus: the larger of the fit's own and the delete-a-fold jackknife, sqrt((k-1)/k sum (theta_k - mean)^2)  (3)
// Source   (3) Tukey 1958; Efron and Tibshirani, An Introduction to the Bootstrap (1993), chapter 11
// Valid    kernels of one GPU; a figure that the points do not tell (less than half of its prior variance) stays what it was
// Ignores  tiles of the library and hardware figures: those are the catalogue's and the profile's
// Tests    unit/kernel_fit_test (recovers a profile it was not shown)
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "calibration/kernel_forecast.hpp"
#include "calibration/kernel_rows.hpp"
#include "calibration/profile.hpp"
#include "calibration/robust_fit.hpp"

namespace stepcast::calibration {

enum class KernelPart : std::uint8_t { kProducts, kStreams, kReductions, kFp8Products, kAttention, kAttentionBackward };
const char* name_of(KernelPart part);
KernelPart part_of(const plan::Kernel& kernel);
// FLOP of products and attention, bytes of the others.
double work_of(const plan::Kernel& kernel);

struct KernelPoint {
  std::string name;                  // equal shapes have equal names: folds never split them
  KernelPart part = KernelPart::kProducts;
  double work = 0;                   // FLOP of products and attention, bytes of the others
  double measured_s = 0;
  double spread = 1;                 // v of robust_fit.hpp
  bool vllm = false;                 // attention: of vLLM's kernels and cache
  std::function<double(const KernelForecast&)> forecast_s;
};

// Rows, all of one GPU, as points where the model knows their number format. Products below 1 GFLOP spread wider: launches weigh there.
std::vector<KernelPoint> points_of(const KernelRows& table, const KernelForecast& supported);

struct PartErrors {
  std::size_t n = 0;
  double median = 0;                 // [1] of |forecast / measured - 1|
  double p95 = 0;
  double signed_median = 0;
};
using ErrorsByPart = std::map<KernelPart, PartErrors>;

struct FitNotes {
  std::string source;                // of a fitted figure, before the number of points
  std::optional<std::string> date;
  std::vector<std::string> kept;     // keys of figures that are not fitted
};

// The profile with the figures that these points tell of as `start` has them: where a fit begins that is to give the same whatever
// the profile held before.
Profile beginning_at(Profile profile, const Profile& start, std::span<const KernelPoint> points, const FitNotes& notes);

struct KernelFit {
  Profile profile;                   // the prior with the fitted figures
  std::vector<FittedFigure> figures; // of all stages, those that stayed included
  std::vector<double> weights;       // by point: 0 an outlier
  ErrorsByPart fitted;               // on the points of the fit
};

// Requires: at least one point.
KernelFit fit_kernels(std::span<const KernelPoint> points, const topology::Gpu& gpu, const Profile& prior, const FitNotes& notes);

// The least and the most work of each kind of kernel.
std::vector<FittedRange> ranges_of(std::span<const KernelPoint> points);

ErrorsByPart errors_of(std::span<const KernelPoint> points, const topology::Gpu& gpu, const Profile& profile);

// (2); `widened`: the deviations of `fit` by (3), written into its profile. None where there are too few points to hold any out.
struct HeldOut {
  ErrorsByPart folds;
  ErrorsByPart larger_half;
};
HeldOut hold_out(std::span<const KernelPoint> points, const topology::Gpu& gpu, const Profile& prior, int folds, const FitNotes& notes, KernelFit& widened);

}  // namespace stepcast::calibration
