// calibration/robust_fit.hpp — a few positive figures out of many measured times, some of them wrong.
// Model    r_i = ln(forecast_i(theta) / measured_i);  least sum_i rho(r_i / (s v_i)) + sum_j ((x_j - x0_j) / d_j)^2 / 2   (1)
//          x = ln theta, or theta itself where it is a share that may be zero; Huber's rho (1.345) until it settles, then Tukey's
//          biweight (4.685), which gives points beyond 4.685 s no say                                                 (2)
//          or Huber's to the end, where what is wrong is the model: all points keep a say
//          s = 1.4826 median |r_i / v_i|                                                                              (3)
//          C = (q J^T J / s^2 + D^-2)^-1,  q = (mean psi')^2 / mean psi^2 (1 - p / n),  J = dr/dx                      (4)
// Symbols  v [1] how much wider than others a point spreads; s [1] robust deviation of the points' logarithms; d [1] how far a
//          figure may be from its prior, in x; p, n parameters and points; plus_minus: one standard deviation, from C
// Source   Broyden, Math. Comp. 19 (1965) 577 for (5); Huber, Robust Statistics (1981), 7.6 for (4); Beaton and Tukey 1974 for (2); Levenberg 1944, Marquardt 1963 for the search
// Valid    points whose errors are independent and no more than about a third of them wrong
// Ignores  that a model is wrong in the same way for neighbouring shapes: (4) is then too small, and callers compare it with
//          how the figures move between folds
// Cost     (p + 1) forecasts an iteration, some 20 iterations; with (5) some 2 p + 15 in all
// Tests    unit/robust_fit_test (recovers figures it was not shown)
#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace stepcast::calibration {

enum class FitLoss : std::uint8_t { kHuber, kTukey };
enum class FitScale : std::uint8_t { kLogarithm, kLinear };

struct FreeFigure {
  std::string key;
  double prior = 0;                  // where the search begins, too
  double low = 0;
  double high = std::numeric_limits<double>::infinity();
  double prior_deviation = 1.0;      // d of (1)
  FitScale scale = FitScale::kLogarithm;
};

struct FittedFigure {
  std::string key;
  double value = 0;
  double plus_minus = 0;
  double informed = 0;               // [1] share of the prior's variance that the points removed: 0 they say nothing
};

struct RobustFit {
  std::vector<FittedFigure> figures;
  double deviation = 0;              // s
  std::vector<double> residuals;     // r, by point
  std::vector<double> weights;       // [1] of (2), by point: 0 has no say
  std::vector<double> covariance;    // of x, p by p
  int iterations = 0;
  bool converged = false;
};

// Writes a forecast [s] for each point; positive.
using Forecasts = std::function<void(std::span<const double> figures, std::span<double> seconds)>;

// For forecasts that take long, and for fewer points than tell their own deviation.
struct FitLimits {
  int most_iterations = 60;          // of each loss
  double least_gain = 1e-7;          // [1] of the sum (1): the search ends at less
  double least_deviation = 1e-4;     // of s: how well a point repeats
  double most_deviation = std::numeric_limits<double>::infinity();  // of s: all points may be off alike, for want of a figure
  bool secant = false;               // J by differences once, then J += (dr - J dx) dx^T / |dx|^2 after each step                  (5)
  FitLoss last = FitLoss::kTukey;    // (2)
  int starts = 1;                    // the search begins from the priors, then from points about them: where a model chooses (a library its
                                     // tiles), the sum has several valleys
};

// `spread`: v, one a point; empty: all alike. Requires: at least one point, positive times, priors within their bounds and above
// zero where the scale is logarithmic.
RobustFit fit_robustly(std::span<const double> measured_s, std::span<const double> spread, std::span<const FreeFigure> figures, const Forecasts& forecasts,
                       const FitLimits& limits = {});

// Median of |values|, and a quantile of them by nearest rank. Requires: not empty.
double median_of(std::vector<double> values);
double quantile_of(std::vector<double> values, double share);

}  // namespace stepcast::calibration
