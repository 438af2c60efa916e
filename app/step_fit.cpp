#include "app/step_fit.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string_view>

#include <fmt/format.h>

#include "app/parallel_rows.hpp"
#include "app/setup.hpp"
#include "app/truth_table.hpp"
#include "calibration/profile_parameters.hpp"
#include "calibration/robust_fit.hpp"
#include "sim/base/diagnostic.hpp"
#include "sim/base/hash.hpp"
#include "sim/base/random.hpp"
#include "sim/base/text.hpp"

namespace stepcast::app {
namespace {

constexpr std::array<std::string_view, 8> kStepFigures{
    "overhead.host_launch",     "overhead.host_collective",      "overhead.host_recompute",     "overhead.host_step",
    "overhead.collective_wait", "memory.streaming_efficiency",   "memory.reduction_efficiency", "clock.sustained_fraction"};

// A row off by much is off for want of a figure: its error is no measure of how far rows spread.
constexpr calibration::FitLimits kLimits{.most_iterations = 5, .least_gain = 2e-3, .most_deviation = 0.1};
constexpr double kStandIn = 0.3;  // [1] least deviation of figures of a profile that stands in
// Plans of more instructions are made again for each forecast, rather than kept.
constexpr std::size_t kLargestKept = 2'000'000;

struct Case {
  scenario::Loaded loaded;
  std::string id;
  double measured_s = 0;
  bool fitted = false;
  std::optional<Setup> kept;
};

struct Family {
  calibration::Profile profile;
  bool own = true;
  std::vector<Case> cases;
};

std::size_t instructions(const plan::Plan& plan) {
  std::size_t sum = 0;
  for (const plan::Program& program : plan.programs) sum += program.instructions.size();
  return sum;
}

// Step time with another profile.
double step_with(const HardwareShelf& shelf, Case& one, const calibration::Profile& profile, bool keep) {
  std::optional<Setup> made;
  if (!one.kept) made = prepare(shelf, one.loaded);
  Setup& setup = made ? *made : *one.kept;
  setup.profile.profile = profile;
  setup.collectives = pick_collectives(shelf, setup.hardware, setup.profile);
  setup.side_networks = pick_side_networks(shelf, setup.hardware, setup.profile);
  const double seconds = forecast(setup, {}).step_time_s();
  if (made && keep && instructions(made->plan) <= kLargestKept) one.kept = std::move(made);
  return seconds;
}

// In the order of a random number of each row's name.
void deal(std::vector<Case>& cases, const StepFitRequest& request) {
  std::vector<std::pair<std::uint64_t, Case*>> order;
  for (Case& one : cases) {
    Fingerprint name;
    name.add(one.id);
    order.emplace_back(Rng{request.seed, "rows to fit", name.value()}.next(), &one);
  }
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return std::tie(a.first, a.second->id) < std::tie(b.first, b.second->id); });
  const auto wanted = static_cast<std::size_t>(std::ceil(request.share * static_cast<double>(order.size()) - 1e-9));
  for (std::size_t i = 0; i < std::min(wanted, order.size()); ++i) order[i].second->fitted = true;
}

std::map<std::string, Family> read_families(const StepFitRequest& request, const HardwareShelf& shelf, std::size_t& refused) {
  std::map<std::string, Family> families;
  for (const calibration::TruthRow& row : calibration::read_truth_table(CsvTable::read(request.file), shelf.catalogue)) {
    if (!row.refusal.empty() || !row.step_s) {
      ++refused;
      continue;
    }
    try {
      Case one{.loaded = load_row(row, request.file, shelf), .id = row.id, .measured_s = *row.step_s};
      const topology::ClusterHardware hardware = pick_hardware(shelf, one.loaded);
      calibration::ChosenProfile chosen = pick_profile(shelf, one.loaded, hardware.gpu);
      if (request.family && hardware.gpu.name != *request.family) continue;
      static_cast<void>(prepare(shelf, one.loaded));  // what cannot be is refused here
      Family& family = families[hardware.gpu.name];
      family.own = chosen.own;
      family.profile = std::move(chosen.profile);
      family.cases.push_back(std::move(one));
    } catch (const UserError&) {
      ++refused;
    }
  }
  return families;
}

std::vector<double> all_steps(const HardwareShelf& shelf, std::vector<Case>& cases, const calibration::Profile& profile, unsigned threads) {
  std::vector<double> seconds(cases.size());
  in_parallel(cases.size(), threads, [&](std::size_t i) { seconds[i] = step_with(shelf, cases[i], profile, false); });
  return seconds;
}

std::vector<calibration::FreeFigure> free_figures(const calibration::Profile& profile, bool own) {
  std::vector<calibration::FreeFigure> figures;
  for (const calibration::ProfileParameter& p : calibration::parameters_of(profile)) {
    if (std::find(kStepFigures.begin(), kStepFigures.end(), p.key) == kStepFigures.end() || p.value <= 0.0) continue;
    figures.push_back({.key = p.key, .prior = p.value, .low = p.value / 20.0, .high = std::min(p.high, p.value * 20.0),
                       .prior_deviation = std::max(p.plus_minus / p.value, own ? 0.0 : kStandIn)});
  }
  return figures;
}

double three_digits(double value) { return parse_number(fmt::format("{:.3g}", value)).value_or(value); }

StepFit fit_family(const StepFitRequest& request, const HardwareShelf& shelf, const std::string& name, Family& family, const std::function<void(const std::string&)>& progress) {
  deal(family.cases, request);
  std::vector<Case*> chosen;
  std::vector<double> measured;
  for (Case& one : family.cases) {
    if (!one.fitted) continue;
    chosen.push_back(&one);
    measured.push_back(one.measured_s);
  }
  const std::vector<calibration::FreeFigure> figures = free_figures(family.profile, family.own);
  const auto with = [&](std::span<const double> values) {
    calibration::Profile profile = family.profile;
    for (std::size_t i = 0; i < figures.size(); ++i) calibration::set_parameter(profile, figures[i].key, values[i]);
    return profile;
  };
  std::size_t rounds = 0;
  const calibration::RobustFit fit = calibration::fit_robustly(measured, {}, figures, [&](std::span<const double> values, std::span<double> seconds) {
    progress(fmt::format("{}: {} rows, forecast {} times", name, chosen.size(), ++rounds));
    const calibration::Profile profile = with(values);
    in_parallel(chosen.size(), request.threads, [&](std::size_t i) { seconds[i] = step_with(shelf, *chosen[i], profile, true); });
  }, kLimits);
  StepFit result{.family = name, .profile = family.profile};
  const std::string source = fmt::format("stepcast calibrate --table: step times of {} rows of {}, seed {}", chosen.size(), family.cases.size(), request.seed);
  for (const calibration::FittedFigure& f : fit.figures) {
    const std::optional<double> before = calibration::parameter_value(result.profile, f.key);
    const double value = three_digits(f.value), plus_minus = three_digits(f.plus_minus);
    calibration::replace_figure(result.profile, f.key, {.value = value, .basis = topology::Basis::kMeasured, .source = source, .plus_minus = plus_minus});
    StepFigure shown{.key = f.key, .informed = f.informed};
    const auto text = [&](double value) {
      calibration::Profile with_it = family.profile;
      calibration::set_parameter(with_it, f.key, value);
      for (const calibration::ProfileParameter& p : calibration::parameters_of(with_it))
        if (p.key == f.key) return p.text;
      return std::string{};
    };
    shown.before = text(before.value_or(0.0));
    shown.after = text(value);
    shown.plus_minus = text(plus_minus);
    result.figures.push_back(std::move(shown));
  }
  progress(fmt::format("{}: all {} rows", name, family.cases.size()));
  const std::vector<double> before = all_steps(shelf, family.cases, family.profile, request.threads);
  const std::vector<double> after = all_steps(shelf, family.cases, result.profile, request.threads);
  for (std::size_t i = 0; i < family.cases.size(); ++i) {
    const Case& one = family.cases[i];
    result.rows.push_back({one.id, one.fitted, one.measured_s, before[i], after[i]});
  }
  return result;
}

std::string error_line(const char* what, const ErrorSummary& before, const ErrorSummary& after) {
  return fmt::format("  {:<12} {:>5} {:>9} {:>9} {:>9} {:>10}   {:>9} {:>9} {:>9} {:>10}\n", what, after.n, or_dash(before.mean_absolute, " %"),
                     or_dash(before.median_absolute, " %"), or_dash(before.worst_absolute, " %"), or_dash(before.mean_signed, " %"),
                     or_dash(after.mean_absolute, " %"), or_dash(after.median_absolute, " %"), or_dash(after.worst_absolute, " %"),
                     or_dash(after.mean_signed, " %"));
}

nlohmann::ordered_json errors_json(const ErrorSummary& e) {
  const auto number = [](std::optional<double> v) { return v ? nlohmann::ordered_json(*v) : nlohmann::ordered_json(nullptr); };
  return {{"n", e.n}, {"mape_pct", number(e.mean_absolute)}, {"median_ape_pct", number(e.median_absolute)},
          {"worst_ape_pct", number(e.worst_absolute)}, {"bias_pct", number(e.mean_signed)}};
}

}  // namespace

ErrorSummary StepFit::errors(bool fitted, bool after) const {
  std::vector<double> list;
  for (const StepFitRow& row : rows) {
    if (row.fitted != fitted) continue;
    if (const auto error = relative_pct(after ? row.after_s : row.before_s, row.measured_s)) list.push_back(*error);
  }
  return sum_up(list);
}

std::vector<StepFit> fit_steps(const StepFitRequest& request, const HardwareShelf& shelf, const std::function<void(const std::string&)>& progress) {
  std::size_t refused = 0;
  std::map<std::string, Family> families = read_families(request, shelf, refused);
  if (families.empty()) {
    throw UserError(Diagnostic{.where = {request.file, 0, 0}, .path = request.family ? "--family" : "--table",
                               .problem = "no row to fit", .expected = "rows with a step time that can be forecast, of that family",
                               .got = request.family.value_or("")});
  }
  std::vector<StepFit> fits;
  for (auto& [name, family] : families) {
    const auto fitted = static_cast<std::size_t>(std::ceil(request.share * static_cast<double>(family.cases.size()) - 1e-9));
    if (fitted == 0 || fitted >= family.cases.size()) {
      if (!request.family) continue;
      throw UserError(Diagnostic{.path = "--rows", .problem = fmt::format("{} of {} rows of {} would be fitted", fitted, family.cases.size(), name),
                                 .expected = "at least one, and one left to try the fit on"});
    }
    fits.push_back(fit_family(request, shelf, name, family, progress));
    fits.back().refused = refused;
  }
  return fits;
}

std::string step_fit_text(const std::vector<StepFit>& fits) {
  std::string text;
  for (const StepFit& fit : fits) {
    text += fmt::format("{}\n  {:<34} {:>12} {:>12} {:>12} {:>9}\n", fit.family, "figure", "before", "fitted", "+-", "informed");
    for (const StepFigure& f : fit.figures) text += fmt::format("  {:<34} {:>12} {:>12} {:>12} {:>7.0f} %\n", f.key, f.before, f.after, f.plus_minus, 100 * f.informed);
    text += fmt::format("  {:<12} {:>5} {:>9} {:>9} {:>9} {:>10}   {:>9} {:>9} {:>9} {:>10}\n", "", "rows", "mean", "median", "worst", "signed", "mean", "median", "worst", "signed");
    text += error_line("fitted", fit.errors(true, false), fit.errors(true, true));
    text += error_line("held out", fit.errors(false, false), fit.errors(false, true));
    text += "\n";
  }
  if (!fits.empty()) text += fmt::format("{} rows of the table have no forecast or no step time\n", fits.front().refused);
  return text;
}

nlohmann::ordered_json step_fit_json(const std::vector<StepFit>& fits) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const StepFit& fit : fits) {
    nlohmann::ordered_json figures = nlohmann::ordered_json::object();
    for (const StepFigure& f : fit.figures) figures[f.key] = {{"before", f.before}, {"fitted", f.after}, {"plus_minus", f.plus_minus}, {"informed", f.informed}};
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    for (const StepFitRow& row : fit.rows)
      rows.push_back({{"row_id", row.id}, {"fitted", row.fitted}, {"measured_step_s", row.measured_s}, {"before_step_s", row.before_s}, {"after_step_s", row.after_s}});
    out.push_back({{"family", fit.family}, {"figures", std::move(figures)},
                   {"fitted", {{"before", errors_json(fit.errors(true, false))}, {"after", errors_json(fit.errors(true, true))}}},
                   {"held_out", {{"before", errors_json(fit.errors(false, false))}, {"after", errors_json(fit.errors(false, true))}}},
                   {"rows", std::move(rows)}});
  }
  return out;
}

}  // namespace stepcast::app
