#include "app/calibrate/step_fit.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string_view>

#include <fmt/format.h>

#include "app/calibrate/row_deal.hpp"
#include "app/calibrate/step_rows.hpp"
#include "app/validate/parallel_rows.hpp"
#include "app/validate/truth_table.hpp"
#include "calibration/profile_parameters.hpp"
#include "calibration/robust_fit.hpp"
#include "sim/base/diagnostic.hpp"
#include "sim/base/text.hpp"

namespace stepcast::app {
namespace {

constexpr std::array<std::string_view, 8> kStepFigures{
    "overhead.host_launch",     "overhead.host_collective",      "overhead.host_recompute",     "overhead.host_step",
    "overhead.collective_wait", "memory.streaming_efficiency",   "memory.reduction_efficiency", "clock.sustained_fraction"};

// A row off by much is off for want of a figure: its error is no measure of how far rows spread, and it keeps its say: the next row of its kind will be
// off as far. (A kernel's outlier is a mistake of measuring, which does not come again.) Runs repeat to 2 % (the median of what tables state, `noise_pct`).
constexpr calibration::FitLimits kLimits{.most_iterations = 8, .least_gain = 2e-3, .least_deviation = 0.02, .most_deviation = 0.1, .secant = true, .last = calibration::FitLoss::kHuber};
constexpr double kTold = 0.05;    // [1] of its prior's variance that rows have to remove of a figure: it stays what it was, else, with its evidence
constexpr double kStandIn = 0.3;  // [1] least deviation of figures of a profile that stands in
// [1] least deviation of a machine's figures from those of another with the same GPU: Sinha et al., SC 2022, find the performance of GPUs
// of one type 8 % apart on average, 22 % at most. A figure's own +- is of the machine that it was measured on.
constexpr double kMachines = 0.08;
constexpr std::size_t kFolds = 5;  // or a row each

std::vector<calibration::FreeFigure> free_figures(const calibration::Profile& profile, bool own) {
  std::vector<calibration::FreeFigure> figures;
  for (const calibration::ProfileParameter& p : calibration::parameters_of(profile)) {
    if (std::find(kStepFigures.begin(), kStepFigures.end(), p.key) == kStepFigures.end() || p.value <= 0.0) continue;
    // A clock that is taken from one power limit to another ends at the boost clock (gpu_parameters.cpp): beyond it nothing would change.
    const double most = p.key == "clock.sustained_fraction" && profile.clock.power_per_sm ? std::max(1.0, p.value) : p.high;
    figures.push_back({.key = p.key, .prior = p.value, .low = p.value / 20.0, .high = std::min(most, p.value * 20.0),
                       .prior_deviation = std::max(p.plus_minus / p.value, own ? kMachines : kStandIn)});
  }
  return figures;
}

bool is_told(const calibration::FittedFigure& f) { return f.informed >= kTold; }

double three_digits(double value) { return parse_number(fmt::format("{:.3g}", value)).value_or(value); }

// Fits to rows of a family. What was forecast is kept: every fit begins with the same figures.
class Search {
 public:
  Search(const HardwareShelf& shelf, const StepFamily& family, unsigned threads, std::function<void(std::size_t)> progress)
      : shelf_{shelf}, family_{family}, threads_{threads}, progress_{std::move(progress)}, figures_{free_figures(family.profile, family.own)} {}

  [[nodiscard]] calibration::RobustFit fit(std::span<StepRow* const> rows) {
    std::vector<double> measured;
    for (const StepRow* row : rows) measured.push_back(row->measured_s);
    return calibration::fit_robustly(measured, {}, figures_, [&](std::span<const double> values, std::span<double> seconds) { forecast(rows, values, seconds); }, kLimits);
  }

  // The value that the profile gets: what it was, where the rows do not tell.
  [[nodiscard]] double value(const calibration::FittedFigure& fitted, std::size_t i) const { return is_told(fitted) ? three_digits(fitted.value) : figures_[i].prior; }

  // [row] of a fit to the other folds' rows: logarithm of forecast over measured.
  [[nodiscard]] std::vector<double> left_out(std::span<StepRow* const> rows) {
    std::vector<double> errors(rows.size());
    const std::size_t folds = std::min(rows.size(), kFolds);
    for (std::size_t fold = 0; fold < folds; ++fold) {
      std::vector<StepRow*> out;
      std::vector<StepRow*> rest;
      for (std::size_t i = 0; i < rows.size(); ++i) (i % folds == fold ? out : rest).push_back(rows[i]);
      std::vector<double> values = priors();
      if (!rest.empty()) {
        const calibration::RobustFit fitted = fit(rest);
        for (std::size_t i = 0; i < values.size(); ++i) values[i] = value(fitted.figures[i], i);
      }
      std::vector<double> seconds(out.size());
      forecast(out, values, seconds);
      for (std::size_t i = 0; i < out.size(); ++i) errors[fold + i * folds] = std::log(seconds[i] / out[i]->measured_s);
    }
    return errors;
  }

 private:
  [[nodiscard]] std::vector<double> priors() const {
    std::vector<double> values;
    for (const calibration::FreeFigure& f : figures_) values.push_back(f.prior);
    return values;
  }

  [[nodiscard]] calibration::Profile with(std::span<const double> values) const {
    calibration::Profile profile = family_.profile;
    for (std::size_t i = 0; i < figures_.size(); ++i) calibration::set_parameter(profile, figures_[i].key, values[i]);
    return profile;
  }

  void forecast(std::span<StepRow* const> rows, std::span<const double> values, std::span<double> seconds) {
    progress_(++forecasts_);
    std::map<const StepRow*, double>& known = known_[{values.begin(), values.end()}];
    std::vector<StepRow*> missing;
    for (StepRow* row : rows)
      if (!known.contains(row)) missing.push_back(row);
    std::vector<double> found(missing.size());
    const calibration::Profile profile = with(values);
    in_parallel(missing.size(), threads_, [&](std::size_t i) { found[i] = step_with(shelf_, *missing[i], profile); });
    for (std::size_t i = 0; i < missing.size(); ++i) known.emplace(missing[i], found[i]);
    for (std::size_t i = 0; i < rows.size(); ++i) seconds[i] = known.at(rows[i]);
  }

  const HardwareShelf& shelf_;
  const StepFamily& family_;
  unsigned threads_;
  std::function<void(std::size_t)> progress_;
  std::vector<calibration::FreeFigure> figures_;
  std::map<std::vector<double>, std::map<const StepRow*, double>> known_;
  std::size_t forecasts_ = 0;
};

// [1] of logarithms.
double mean_off(std::span<const double> errors) {
  double sum = 0.0;
  for (const double e : errors) sum += std::abs(e);
  return sum / static_cast<double>(errors.size());
}

std::vector<double> errors_before(std::span<StepRow* const> rows) {
  std::vector<double> errors;
  for (const StepRow* row : rows) errors.push_back(std::log(row->before_s / row->measured_s));
  return errors;
}

// "38 us", as a profile's file has it.
std::string figure_text(calibration::Profile profile, const std::string& key, double value) {
  calibration::set_parameter(profile, key, value);
  for (const calibration::ProfileParameter& p : calibration::parameters_of(profile))
    if (p.key == key) return p.text;
  return {};
}

StepFit fit_family(const StepFitRequest& request, const HardwareShelf& shelf, const std::string& name, StepFamily& family, const std::function<void(const std::string&)>& progress) {
  std::vector<std::string> names;
  for (const StepRow& row : family.rows) names.push_back(row.id);
  const std::vector<bool> fitted = deal_rows(names, request.share, request.seed);
  std::vector<StepRow*> chosen;
  for (std::size_t i = 0; i < family.rows.size(); ++i)
    if (fitted[i]) chosen.push_back(&family.rows[i]);
  Search search{shelf, family, request.threads, [&](std::size_t forecasts) { progress(fmt::format("{}: {} rows, forecast {} times", name, chosen.size(), forecasts)); }};
  keep_plans(shelf, chosen, request.threads);
  const calibration::RobustFit fit = search.fit(chosen);
  StepFit result{.family = name, .profile = family.profile};
  result.left_out_before = mean_off(errors_before(chosen));
  result.left_out = mean_off(search.left_out(chosen));
  for (StepRow* row : chosen) row->kept.reset();
  result.helps = result.left_out < result.left_out_before;
  result.profile.name = machine_name(family.table, name);
  result.profile.gpus = {name};
  result.profile.architectures.clear();
  const std::string source = fmt::format("stepcast calibrate --table: step times of {} rows of {} of {} on {}, seed {}", chosen.size(), family.rows.size(), family.table, name, request.seed);
  for (std::size_t i = 0; i < fit.figures.size(); ++i) {
    const calibration::FittedFigure& f = fit.figures[i];
    const double before = calibration::parameter_value(family.profile, f.key).value_or(f.value);
    const bool changed = result.helps && is_told(f);
    const double value = changed ? search.value(f, i) : before;
    const double plus_minus = three_digits(f.plus_minus);
    if (changed) calibration::replace_figure(result.profile, f.key, {.value = value, .basis = topology::Basis::kMeasured, .source = source, .plus_minus = plus_minus, .date = request.date});
    result.figures.push_back({.key = f.key, .before = figure_text(family.profile, f.key, before), .after = figure_text(family.profile, f.key, value),
                              .plus_minus = figure_text(family.profile, f.key, plus_minus), .informed = f.informed});
  }
  progress(fmt::format("{}: all {} rows", name, family.rows.size()));
  std::vector<double> after(family.rows.size());
  in_parallel(after.size(), request.threads, [&](std::size_t i) { after[i] = step_with(shelf, family.rows[i], result.profile); });
  for (std::size_t i = 0; i < family.rows.size(); ++i) {
    const StepRow& row = family.rows[i];
    result.rows.push_back({row.id, fitted[i], row.complete, row.measured_s, row.before_s, after[i]});
  }
  return result;
}

}  // namespace

ErrorSummary errors_of(std::span<const StepFit> fits, bool fitted, bool after, bool only_complete) {
  std::vector<double> list;
  for (const StepFit& fit : fits) {
    for (const StepFitRow& row : fit.rows) {
      if (row.fitted != fitted || (only_complete && !row.complete)) continue;
      if (const auto error = relative_pct(after ? row.after_s : row.before_s, row.measured_s)) list.push_back(*error);
    }
  }
  return sum_up(list);
}

ErrorSummary StepFit::errors(bool fitted, bool after) const { return errors_of({this, 1}, fitted, after); }

StepFits fit_steps(const StepFitRequest& request, const HardwareShelf& shelf, const std::function<void(const std::string&)>& progress) {
  StepFits fits;
  StepTable table = read_step_table({request.file, request.family, request.threads}, shelf, progress);
  fits.rows = table.rows;
  if (table.families.empty()) {
    throw UserError(Diagnostic{.where = {request.file, 0, 0}, .path = request.family ? "--family" : "--table",
                               .problem = "no row to fit", .expected = "rows with a step time that can be forecast, of that family",
                               .got = request.family.value_or("")});
  }
  std::vector<double> shipped;
  for (const auto& [name, family] : table.families) {
    for (const StepRow& row : family.rows) {
      if (const auto error = relative_pct(row.before_s, row.measured_s)) shipped.push_back(*error);
    }
  }
  fits.shipped = sum_up(shipped);
  for (auto& [name, family] : table.families) {
    const std::size_t fitted = rows_dealt(family.rows.size(), request.share);
    if (fitted == 0 || fitted >= family.rows.size()) {
      if (!request.family) continue;
      throw UserError(Diagnostic{.path = "--rows", .problem = fmt::format("{} of {} rows of {} would be fitted", fitted, family.rows.size(), name),
                                 .expected = "at least one, and one left to try the fit on"});
    }
    fits.families.push_back(fit_family(request, shelf, name, family, progress));
  }
  return fits;
}

}  // namespace stepcast::app
