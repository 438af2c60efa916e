#include "calibration/robust_fit.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include <Eigen/Dense>

#include "sim/base/check.hpp"

namespace stepcast::calibration {
namespace {

constexpr double kHuberAt = 1.345;    // 95 % efficient for normal errors
constexpr double kTukeyAt = 4.685;    // the same
constexpr double kStep = 3e-3;        // of x, for derivatives: wider than the kinks where a library changes its tile
constexpr int kTries = 12;            // lengths of a step
constexpr int kStaleTries = 3;        // with slopes that were not taken here

// psi(u) / u.
double weight_of(FitLoss loss, double u) {
  const double a = std::abs(u);
  if (loss == FitLoss::kHuber) return a <= kHuberAt ? 1.0 : kHuberAt / a;
  if (a >= kTukeyAt) return 0.0;
  const double t = 1.0 - (u / kTukeyAt) * (u / kTukeyAt);
  return t * t;
}

double loss_of(FitLoss loss, double u) {
  const double a = std::abs(u);
  if (loss == FitLoss::kHuber) return a <= kHuberAt ? 0.5 * u * u : kHuberAt * (a - 0.5 * kHuberAt);
  const double most = kTukeyAt * kTukeyAt / 6.0;
  if (a >= kTukeyAt) return most;
  const double t = 1.0 - (u / kTukeyAt) * (u / kTukeyAt);
  return most * (1.0 - t * t * t);
}

// psi'(u).
double slope_of(FitLoss loss, double u) {
  if (loss == FitLoss::kHuber) return std::abs(u) <= kHuberAt ? 1.0 : 0.0;
  if (std::abs(u) >= kTukeyAt) return 0.0;
  const double q = (u / kTukeyAt) * (u / kTukeyAt);
  return (1.0 - q) * (1.0 - 5.0 * q);
}

class Search {
 public:
  Search(std::span<const double> measured, std::span<const double> spread, std::span<const FreeFigure> figures, const Forecasts& forecasts, const FitLimits& limits)
      : limits_{limits}, measured_{measured}, spread_{spread}, figures_{figures}, forecasts_{forecasts}, n_{static_cast<Eigen::Index>(measured.size())},
        p_{static_cast<Eigen::Index>(figures.size())}, x_{p_}, x0_{p_}, low_{p_}, high_{p_} {
    for (Eigen::Index j = 0; j < p_; ++j) {
      const FreeFigure& f = at(j);
      x0_[j] = to_x(f, f.prior);
      low_[j] = f.low > 0.0 || f.scale == FitScale::kLinear ? to_x(f, f.low) : -std::numeric_limits<double>::infinity();
      high_[j] = std::isfinite(f.high) ? to_x(f, f.high) : std::numeric_limits<double>::infinity();
    }
    x_ = x0_;
    r_ = residuals(x_);
  }

  RobustFit run() {
    start_again();
    descend(FitLoss::kHuber, limits_);
    if (limits_.last == FitLoss::kTukey) descend(FitLoss::kTukey, limits_);
    return result();
  }

 private:
  using Vector = Eigen::VectorXd;

  [[nodiscard]] const FreeFigure& at(Eigen::Index j) const { return figures_[static_cast<std::size_t>(j)]; }
  static double to_x(const FreeFigure& f, double value) { return f.scale == FitScale::kLogarithm ? std::log(value) : value; }
  static double to_value(const FreeFigure& f, double x) { return f.scale == FitScale::kLogarithm ? std::exp(x) : x; }

  Vector residuals(const Vector& x) const {
    std::vector<double> values(figures_.size());
    for (Eigen::Index j = 0; j < p_; ++j) values[static_cast<std::size_t>(j)] = std::clamp(to_value(at(j), x[j]), at(j).low, at(j).high);
    std::vector<double> seconds(measured_.size());
    forecasts_(values, seconds);
    Vector r{n_};
    for (std::size_t i = 0; i < seconds.size(); ++i) {
      SIM_CHECK(seconds[i] > 0.0, i, seconds[i]);
      r[static_cast<Eigen::Index>(i)] = std::log(seconds[i] / measured_[i]) / (spread_.empty() ? 1.0 : spread_[i]);
    }
    return r;
  }

  [[nodiscard]] double deviation() const {
    std::vector<double> absolute(r_.data(), r_.data() + n_);
    for (double& value : absolute) value = std::abs(value);
    return std::clamp(1.4826 * median_of(std::move(absolute)), limits_.least_deviation, limits_.most_deviation);
  }

  [[nodiscard]] double cost(FitLoss loss, const Vector& r, const Vector& x, double s) const {
    double sum = 0.0;
    for (Eigen::Index i = 0; i < n_; ++i) sum += loss_of(loss, r[i] / s);
    for (Eigen::Index j = 0; j < p_; ++j) sum += 0.5 * std::pow((x[j] - x0_[j]) / at(j).prior_deviation, 2.0);
    return sum;
  }

  // One-sided, away from the bound where there is one.
  [[nodiscard]] Eigen::MatrixXd jacobian() const {
    Eigen::MatrixXd jacobian{n_, p_};
    for (Eigen::Index j = 0; j < p_; ++j) {
      Vector x = x_;
      const double step = x[j] + kStep > high_[j] ? -kStep : kStep;
      x[j] += step;
      jacobian.col(j) = (residuals(x) - r_) / step;
    }
    return jacobian;
  }

  // By differences where there is none to go on from.
  void find_slopes() {
    if (limits_.secant && slopes_) return;
    slopes_ = jacobian();
    fresh_ = true;
  }

  // (5)
  void learn(const Vector& x, const Vector& r) {
    const Vector step = x - x_;
    const double square = step.squaredNorm();
    if (square == 0.0) return;
    *slopes_ += (r - r_ - *slopes_ * step) * step.transpose() / square;
    fresh_ = false;
  }

  void descend(FitLoss loss, const FitLimits& limits) {
    double damping = 1e-3;
    converged_ = false;
    for (int k = 0; k < limits.most_iterations && !converged_; ++k) {
      ++iterations_;
      const double s = deviation();
      const double before = cost(loss, r_, x_, s);
      find_slopes();
      const Eigen::MatrixXd jacobian_x = *slopes_;
      Vector weights{n_};
      for (Eigen::Index i = 0; i < n_; ++i) weights[i] = weight_of(loss, r_[i] / s) / (s * s);
      Eigen::MatrixXd normal = jacobian_x.transpose() * weights.asDiagonal() * jacobian_x;
      Vector gradient = jacobian_x.transpose() * weights.asDiagonal() * r_;
      for (Eigen::Index j = 0; j < p_; ++j) {
        const double tie = 1.0 / (at(j).prior_deviation * at(j).prior_deviation);
        normal(j, j) += tie;
        gradient[j] += tie * (x_[j] - x0_[j]);
      }
      hold_at_bounds(normal, gradient);
      bool better = false;
      for (int tries = 0; tries < (fresh_ ? kTries : kStaleTries) && !better; ++tries) {
        Eigen::MatrixXd damped = normal;
        damped.diagonal() *= 1.0 + damping;
        Vector x = x_ - damped.ldlt().solve(gradient);
        for (Eigen::Index j = 0; j < p_; ++j) x[j] = std::clamp(x[j], low_[j], high_[j]);
        const Vector r = residuals(x);
        const double after = cost(loss, r, x, s);
        better = after < before;
        if (limits_.secant && better) learn(x, r);
        if (better) {
          converged_ = before - after < limits.least_gain * (1.0 + before);
          x_ = x;
          r_ = r;
          damping = std::max(1e-9, damping / 5.0);
        } else {
          damping *= 5.0;
        }
      }
      if (better) continue;
      if (limits_.secant && !fresh_) {
        slopes_.reset();  // they may point the wrong way
      } else {
        converged_ = true;  // no step of any length is better
      }
    }
  }

  // Huber's sum from further starts, spread evenly within kReach deviations of the priors (Halton 1960); the lowest is kept. Sums are
  // compared at the smaller deviation of the two.
  void start_again() {
    if (limits_.starts == 1) return;
    constexpr double kReach = 1.5;  // [1] deviations
    const FitLimits coarse{.most_iterations = 12, .least_gain = 1e-3};
    descend(FitLoss::kHuber, coarse);
    Vector best_x = x_;
    Vector best_r = r_;
    double best_s = deviation();
    for (int k = 1; k < limits_.starts; ++k) {
      for (Eigen::Index j = 0; j < p_; ++j) x_[j] = std::clamp(x0_[j] + kReach * at(j).prior_deviation * (2.0 * halton(k, j) - 1.0), low_[j], high_[j]);
      r_ = residuals(x_);
      descend(FitLoss::kHuber, coarse);
      const double s = std::min(best_s, deviation());
      if (cost(FitLoss::kHuber, r_, x_, s) < cost(FitLoss::kHuber, best_r, best_x, s)) {
        best_x = x_;
        best_r = r_;
        best_s = deviation();
      }
    }
    x_ = best_x;
    r_ = best_r;
  }

  // The k-th of a sequence that fills the unit interval evenly, in the base of the figure's prime.
  static double halton(int k, Eigen::Index figure) {
    constexpr std::array<int, 16> kPrimes{2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53};
    const int base = kPrimes[static_cast<std::size_t>(figure) % kPrimes.size()];
    double value = 0.0;
    double part = 1.0;
    for (int rest = k; rest > 0; rest /= base) {
      part /= base;
      value += part * (rest % base);
    }
    return value;
  }

  // A figure at its bound whose gradient points beyond it stays there for this step.
  void hold_at_bounds(Eigen::MatrixXd& normal, Vector& gradient) const {
    for (Eigen::Index j = 0; j < p_; ++j) {
      const bool held = (x_[j] <= low_[j] && gradient[j] > 0.0) || (x_[j] >= high_[j] && gradient[j] < 0.0);
      if (!held) continue;
      normal.row(j).setZero();
      normal.col(j).setZero();
      normal(j, j) = 1.0;
      gradient[j] = 0.0;
    }
  }

  [[nodiscard]] RobustFit result() const {
    RobustFit fit;
    const double s = deviation();
    fit.deviation = s;
    fit.iterations = iterations_;
    fit.converged = converged_;
    double squares = 0.0;
    double slopes = 0.0;
    for (Eigen::Index i = 0; i < n_; ++i) {
      const double u = r_[i] / s;
      const double w = weight_of(limits_.last, u);
      fit.weights.push_back(w);
      fit.residuals.push_back(r_[i] * (spread_.empty() ? 1.0 : spread_[static_cast<std::size_t>(i)]));
      squares += w * u * w * u;
      slopes += slope_of(limits_.last, u);
    }
    const auto n = static_cast<double>(n_);
    const double freedom = std::max(1.0, n - static_cast<double>(p_)) / n;
    const double q = squares > 0.0 ? std::pow(std::max(0.05, slopes / n), 2.0) / (squares / n) * freedom : 1.0;
    const Eigen::MatrixXd jacobian_x = jacobian();
    Eigen::MatrixXd information = q / (s * s) * jacobian_x.transpose() * jacobian_x;
    for (Eigen::Index j = 0; j < p_; ++j) information(j, j) += 1.0 / (at(j).prior_deviation * at(j).prior_deviation);
    const Eigen::MatrixXd covariance = information.ldlt().solve(Eigen::MatrixXd::Identity(p_, p_));
    for (Eigen::Index j = 0; j < p_; ++j) {
      const FreeFigure& f = at(j);
      const double value = std::clamp(to_value(f, x_[j]), f.low, f.high);
      const double sigma = std::sqrt(std::max(0.0, covariance(j, j)));
      const double slope = f.scale == FitScale::kLogarithm ? value : 1.0;
      // Far below its prior a figure's logarithm is vague while the figure is not: it is small.
      const double left = sigma / f.prior_deviation * (f.scale == FitScale::kLogarithm ? std::min(1.0, value / f.prior) : 1.0);
      fit.figures.push_back({.key = f.key, .value = value, .plus_minus = sigma * slope, .informed = 1.0 - std::min(1.0, left * left)});
    }
    fit.covariance.assign(covariance.data(), covariance.data() + covariance.size());
    return fit;
  }

  FitLimits limits_;
  std::span<const double> measured_;
  std::span<const double> spread_;
  std::span<const FreeFigure> figures_;
  const Forecasts& forecasts_;
  Eigen::Index n_;
  Eigen::Index p_;
  Vector x_;
  Vector x0_;
  Vector low_;
  Vector high_;
  Vector r_;
  std::optional<Eigen::MatrixXd> slopes_;
  bool fresh_ = false;               // slopes_ are of x_, by differences
  int iterations_ = 0;
  bool converged_ = false;
};

}  // namespace

double quantile_of(std::vector<double> values, double share) {
  SIM_CHECK(!values.empty());
  std::sort(values.begin(), values.end());
  const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(values.size())));
  return values[std::clamp<std::size_t>(rank, 1, values.size()) - 1];
}

double median_of(std::vector<double> values) { return quantile_of(std::move(values), 0.5); }

RobustFit fit_robustly(std::span<const double> measured_s, std::span<const double> spread, std::span<const FreeFigure> figures, const Forecasts& forecasts,
                       const FitLimits& limits) {
  SIM_CHECK(!measured_s.empty() && !figures.empty(), measured_s.size(), figures.size());
  SIM_CHECK(spread.empty() || spread.size() == measured_s.size(), spread.size());
  for (const FreeFigure& f : figures) SIM_CHECK(f.prior >= f.low && f.prior <= f.high && (f.scale == FitScale::kLinear || f.prior > 0.0), f.prior, f.low, f.high);
  return Search{measured_s, spread, figures, forecasts, limits}.run();
}

}  // namespace stepcast::calibration
