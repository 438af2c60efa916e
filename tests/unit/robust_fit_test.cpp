#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <random>
#include <vector>

#include "calibration/robust_fit.hpp"

using namespace stepcast::calibration;

TEST_SUITE_BEGIN("unit");

namespace {

// t = t0 + max(w / rate, w / 8 / bandwidth): a latency and two roofs.
struct Roof {
  std::vector<double> work;
  std::vector<double> intensity;

  Forecasts forecasts() const {
    return [this](std::span<const double> f, std::span<double> out) {
      for (std::size_t i = 0; i < out.size(); ++i) out[i] = f[0] + std::max(work[i] / f[1], work[i] / intensity[i] / f[2]);
    };
  }
};

Roof roof() {
  Roof r;
  for (int i = 0; i < 20; ++i) {
    for (const double intensity : {1.0, 4.0, 16.0, 64.0}) {
      r.work.push_back(1e5 * std::pow(2.0, i * 0.75));
      r.intensity.push_back(intensity);
    }
  }
  return r;
}

constexpr std::array kTrue{3e-6, 2e12, 1e11};
const std::vector<FreeFigure> kFree{{.key = "latency", .prior = 5e-6}, {.key = "rate", .prior = 1.2e12}, {.key = "bandwidth", .prior = 1.6e11}};

std::vector<double> exact(const Roof& r) {
  std::vector<double> seconds(r.work.size());
  r.forecasts()(kTrue, seconds);
  return seconds;
}

}  // namespace

TEST_CASE("robust fit: exact measurements give the figures back") {
  const Roof r = roof();
  const RobustFit fit = fit_robustly(exact(r), {}, kFree, r.forecasts());
  CHECK(fit.converged);
  for (std::size_t j = 0; j < 3; ++j) CHECK(fit.figures[j].value == doctest::Approx(kTrue[j]).epsilon(2e-3));
}

// One point in ten takes three times as long. Least squares of logarithms would be 11 % slow; these points get no say.
TEST_CASE("robust fit: points that are far off have no say, and are known") {
  const Roof r = roof();
  std::vector<double> measured = exact(r);
  std::mt19937 random{1};
  std::normal_distribution<double> noise{0.0, 0.01};
  for (std::size_t i = 0; i < measured.size(); ++i) measured[i] *= std::exp(noise(random)) * (i % 10 == 3 ? 3.0 : 1.0);
  const RobustFit fit = fit_robustly(measured, {}, kFree, r.forecasts());
  for (std::size_t j = 0; j < 3; ++j) CHECK(fit.figures[j].value == doctest::Approx(kTrue[j]).epsilon(0.01));
  for (std::size_t i = 0; i < measured.size(); ++i) CHECK((fit.weights[i] == 0.0) == (i % 10 == 3));
}

// Points of which a tenth takes three times as long, and to the end: with Huber's loss they pull the figures, by no more than their number.
TEST_CASE("robust fit: with Huber's loss no point loses its say") {
  const Roof r = roof();
  std::vector<double> measured = exact(r);
  for (std::size_t i = 0; i < measured.size(); ++i) measured[i] *= i % 10 == 3 ? 3.0 : std::exp(0.01 * (i % 2 == 0 ? 1.0 : -1.0));
  const RobustFit fit = fit_robustly(measured, {}, kFree, r.forecasts(), {.last = FitLoss::kHuber});
  for (const double weight : fit.weights) CHECK(weight > 0.0);
  for (std::size_t j = 0; j < 3; ++j) CHECK(fit.figures[j].value == doctest::Approx(kTrue[j]).epsilon(0.05));
}

// Nothing is bound by the third figure: it stays at its prior, as far off as the prior said.
TEST_CASE("robust fit: a figure that no point tells of keeps its prior and its deviation") {
  Roof r = roof();
  for (double& intensity : r.intensity) intensity = 1e6;
  const RobustFit fit = fit_robustly(exact(r), {}, kFree, r.forecasts());
  CHECK(fit.figures[2].value == doctest::Approx(1.6e11));
  CHECK(fit.figures[2].informed < 0.01);
  CHECK(fit.figures[2].plus_minus == doctest::Approx(1.6e11).epsilon(0.01));
  CHECK(fit.figures[1].informed > 0.99);
}

// Slopes are learnt from the steps: the same figures for a third of the forecasts, where the search is long.
TEST_CASE("robust fit: slopes by secants find the same figures with fewer forecasts") {
  const Roof r = roof();
  const std::vector<double> measured = exact(r);
  const auto found = [&](bool secant, int& calls) {
    return fit_robustly(measured, {}, kFree, [&](std::span<const double> f, std::span<double> out) { ++calls; r.forecasts()(f, out); },
                        {.most_iterations = 60, .least_gain = 1e-7, .secant = secant});
  };
  int by_differences = 0;
  int by_secants = 0;
  const RobustFit slow = found(false, by_differences);
  const RobustFit fast = found(true, by_secants);
  for (std::size_t j = 0; j < 3; ++j) CHECK(fast.figures[j].value == doctest::Approx(slow.figures[j].value).epsilon(5e-3));
  CHECK(by_secants < by_differences);
}

TEST_CASE("robust fit: a bound holds, and the other figures are fitted at it") {
  const Roof r = roof();
  std::vector<FreeFigure> free = kFree;
  free[1].high = 1.5e12;
  const RobustFit fit = fit_robustly(exact(r), {}, free, r.forecasts());
  CHECK(fit.figures[1].value == doctest::Approx(1.5e12));
  CHECK(fit.figures[2].value == doctest::Approx(1e11).epsilon(0.05));
}

// One point: its time is met, by moving what is least sure.
TEST_CASE("robust fit: one point, and points that are all alike") {
  const Roof r{.work = {1e9}, .intensity = {64.0}};
  const RobustFit one = fit_robustly(exact(r), {}, kFree, r.forecasts());
  for (const FittedFigure& figure : one.figures) CHECK(std::isfinite(figure.value * figure.plus_minus));
  CHECK(one.figures[1].value == doctest::Approx(2e12).epsilon(0.02));
  const Roof alike{.work = std::vector<double>(20, 1e9), .intensity = std::vector<double>(20, 64.0)};
  const RobustFit many = fit_robustly(exact(alike), {}, kFree, alike.forecasts());
  CHECK(many.figures[1].value == doctest::Approx(2e12).epsilon(0.02));
  CHECK(many.figures[2].informed < 0.01);
}

// Must-show 1 of the calibration: 5 % noise and 5 % of the points wrong by a factor of 1.5 to 4, up or down. Each figure lies within two
// of its stated deviations, and all together within the 95 % ellipsoid of their covariance, in at least 90 of 100 seeds.
TEST_CASE("robust fit: figures are recovered within their stated intervals") {
  const Roof r = roof();
  const std::vector<double> truth = exact(r);
  constexpr double kChiSquare95 = 7.815;  // three degrees of freedom
  std::array<int, 3> within{};
  int together = 0;
  for (unsigned seed = 0; seed < 100; ++seed) {
    std::mt19937 random{seed};
    std::normal_distribution<double> noise{0.0, 0.05};
    std::uniform_real_distribution<double> uniform{0.0, 1.0};
    std::vector<double> measured = truth;
    for (double& t : measured) {
      t *= std::exp(noise(random));
      if (uniform(random) < 0.05) t *= std::exp((uniform(random) < 0.5 ? -1.0 : 1.0) * (std::log(1.5) + uniform(random) * std::log(4.0 / 1.5)));
    }
    const RobustFit fit = fit_robustly(measured, {}, kFree, r.forecasts());
    double distance = 0.0;  // of x in its covariance: solved for three figures by hand elimination below
    std::array<std::array<double, 4>, 3> rows{};
    for (std::size_t j = 0; j < 3; ++j) {
      const double off = std::log(fit.figures[j].value / kTrue[j]);
      within[j] += std::abs(fit.figures[j].value - kTrue[j]) <= 2.0 * fit.figures[j].plus_minus ? 1 : 0;
      for (std::size_t k = 0; k < 3; ++k) rows[j][k] = fit.covariance[3 * j + k];
      rows[j][3] = off;
    }
    const std::array<double, 3> off{rows[0][3], rows[1][3], rows[2][3]};
    for (std::size_t p = 0; p < 3; ++p) {
      for (std::size_t j = 0; j < 3; ++j) {
        if (j == p) continue;
        const double factor = rows[j][p] / rows[p][p];
        for (std::size_t k = p; k < 4; ++k) rows[j][k] -= factor * rows[p][k];
      }
    }
    for (std::size_t j = 0; j < 3; ++j) distance += off[j] * rows[j][3] / rows[j][j];
    together += distance <= kChiSquare95 ? 1 : 0;
  }
  MESSAGE("within: " << within[0] << ", " << within[1] << ", " << within[2] << ", together " << together);
  for (const int count : within) CHECK(count >= 90);
  CHECK(together >= 90);
}
