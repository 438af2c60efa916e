#include "app/calibrate/step_fit.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <map>
#include <mutex>
#include <string_view>

#include <fmt/format.h>

#include "app/calibrate/row_deal.hpp"
#include "app/scenario/setup.hpp"
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
// Plans of more instructions are made again for each forecast, rather than kept; and so are further ones once so many are kept.
constexpr std::size_t kLargestKept = 2'000'000;
constexpr std::int64_t kMostKept = 20'000'000;

struct Case {
  scenario::Loaded loaded;
  std::string id;
  double measured_s = 0;
  double before_s = 0;
  bool fitted = false;
  bool complete = false;        // states its set-up
  double correction = 1.0;      // step_time() over estimated_step() as profiles were: 1 but for clusters whose workers differ
  std::optional<Setup> kept;
};

struct Family {
  std::string table;            // its family column, or the file's name
  calibration::Profile profile;
  bool own = true;
  std::vector<Case> cases;
};

std::size_t instructions(const plan::Plan& plan) {
  std::size_t sum = 0;
  for (const plan::Program& program : plan.programs) sum += program.instructions.size();
  return sum;
}

void set_profile(const HardwareShelf& shelf, Setup& setup, const calibration::Profile& profile) {
  setup.profile.profile = profile;
  setup.collectives = pick_collectives(shelf, setup.hardware, setup.profile);
  setup.side_networks = pick_side_networks(shelf, setup.hardware, setup.profile);
}

// Calls `use(setup)` with the row's setup under this profile.
template <class Use>
auto with_profile(const HardwareShelf& shelf, Case& one, const calibration::Profile& profile, Use use) {
  std::optional<Setup> made;
  if (!one.kept) made = prepare(shelf, one.loaded);
  Setup& setup = made ? *made : *one.kept;
  set_profile(shelf, setup, profile);
  return use(setup);
}

// Step time with another profile.
double step_with(const HardwareShelf& shelf, Case& one, const calibration::Profile& profile) {
  return one.correction * with_profile(shelf, one, profile, [](const Setup& setup) { return exact_seconds(estimated_step(setup).time); });
}

void deal(std::vector<Case>& cases, const StepFitRequest& request) {
  std::vector<std::string> names;
  for (const Case& one : cases) names.push_back(one.id);
  const std::vector<bool> dealt = deal_rows(names, request.share, request.seed);
  for (std::size_t i = 0; i < cases.size(); ++i) cases[i].fitted = dealt[i];
}

// A row of the table with its forecast as profiles are; why not, else.
struct Read {
  std::optional<Case> row;
  std::string table;
  std::string gpu;
  calibration::ChosenProfile profile;
  bool refused = false;
};

Read read_row(const calibration::TruthRow& row, const StepFitRequest& request, const HardwareShelf& shelf, std::atomic<std::int64_t>& kept) {
  Read read;
  if (!row.refusal.empty() || !row.step_s) {
    read.refused = true;
    return read;
  }
  try {
    Case one{.loaded = load_row(row, request.file, shelf), .id = row.id, .measured_s = *row.step_s, .complete = row.complete};
    const topology::ClusterHardware hardware = pick_hardware(shelf, one.loaded);
    if (request.family && hardware.gpu.name != *request.family) return read;
    read.table = table_of(row, request.file);
    read.gpu = hardware.gpu.name;
    read.profile = pick_profile(shelf, one.loaded, hardware.gpu);
    Setup setup = prepare(shelf, one.loaded);
    const EstimatedStep estimate = estimated_step(setup);
    one.before_s = exact_seconds(estimate.exact ? estimate.time : step_time(setup, true));
    one.correction = one.before_s / exact_seconds(estimate.time);
    const std::size_t size = instructions(setup.plan);
    if (size <= kLargestKept && kept.fetch_add(static_cast<std::int64_t>(size)) < kMostKept) one.kept = std::move(setup);
    read.row = std::move(one);
  } catch (const UserError&) {
    read.refused = true;
  }
  return read;
}

std::map<std::string, Family> read_families(const StepFitRequest& request, const HardwareShelf& shelf, const std::function<void(const std::string&)>& progress, StepFits& fits) {
  const std::vector<calibration::TruthRow> rows = calibration::read_truth_table(CsvTable::read(request.file), shelf.catalogue);
  std::vector<Read> reads(rows.size());
  std::atomic<std::int64_t> kept{0};
  std::size_t done = 0;
  std::mutex reporting;
  in_parallel(rows.size(), request.threads, [&](std::size_t i) {
    reads[i] = read_row(rows[i], request, shelf, kept);
    const std::scoped_lock lock{reporting};
    progress(fmt::format("{} of {} rows as profiles are", ++done, rows.size()));
  });
  std::map<std::string, Family> families;
  for (Read& read : reads) {
    if (read.row || read.refused) ++fits.rows;
    if (!read.row) continue;
    Family& family = families[read.gpu];
    family.table = std::move(read.table);
    family.own = read.profile.own;
    family.profile = std::move(read.profile.profile);
    family.cases.push_back(std::move(*read.row));
  }
  return families;
}

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

double three_digits(double value) { return parse_number(fmt::format("{:.3g}", value)).value_or(value); }

// [1] of logarithms.
double mean_off(std::span<const double> errors) {
  double sum = 0.0;
  for (const double e : errors) sum += std::abs(e);
  return sum / static_cast<double>(errors.size());
}

std::vector<double> errors_before(std::span<Case* const> rows) {
  std::vector<double> errors;
  for (const Case* one : rows) errors.push_back(std::log(one->before_s / one->measured_s));
  return errors;
}

// Whether rows that are left out are not further off than before by more than the standard error of the difference, row by row.
bool not_worse(std::span<const double> left_out, std::span<const double> before) {
  const auto n = static_cast<double>(before.size());
  double sum = 0.0;
  double squares = 0.0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const double difference = std::abs(left_out[i]) - std::abs(before[i]);
    sum += difference;
    squares += difference * difference;
  }
  const double variance = n > 1.0 ? std::max(0.0, squares - sum * sum / n) / (n - 1.0) : 0.0;
  return sum / n <= std::sqrt(variance / n);
}

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
  std::size_t forecasts = 0;
  const auto forecasts_with = [&](std::span<const double> values, std::span<double> seconds) {
    progress(fmt::format("{}: {} rows, forecast {} times", name, chosen.size(), ++forecasts));
    const calibration::Profile profile = with(values);
    in_parallel(chosen.size(), request.threads, [&](std::size_t i) { seconds[i] = step_with(shelf, *chosen[i], profile); });
  };
  const calibration::RobustFit fit = calibration::fit_robustly(measured, {}, figures, forecasts_with, kLimits);
  StepFit result{.family = name, .profile = family.profile};
  const std::vector<double> before_fit = errors_before(chosen);
  result.left_out_before = mean_off(before_fit);
  result.left_out = mean_off(fit.left_out);
  result.helps = not_worse(fit.left_out, before_fit);
  result.profile.name = machine_name(family.table, name);
  result.profile.gpus = {name};
  result.profile.architectures.clear();
  const std::string source = fmt::format("stepcast calibrate --table: step times of {} rows of {} of {} on {}, seed {}", chosen.size(), family.cases.size(), family.table, name, request.seed);
  for (const calibration::FittedFigure& f : fit.figures) {
    const std::optional<double> before = calibration::parameter_value(result.profile, f.key);
    const bool told = result.helps && f.informed >= kTold;
    const double value = told ? three_digits(f.value) : before.value_or(f.value);
    const double plus_minus = three_digits(f.plus_minus);
    if (told) calibration::replace_figure(result.profile, f.key, {.value = value, .basis = topology::Basis::kMeasured, .source = source, .plus_minus = plus_minus, .date = request.date});
    StepFigure shown{.key = f.key, .informed = f.informed};
    const auto text = [&](double of) {
      calibration::Profile with_it = family.profile;
      calibration::set_parameter(with_it, f.key, of);
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
  std::vector<double> after(family.cases.size());
  in_parallel(after.size(), request.threads, [&](std::size_t i) { after[i] = step_with(shelf, family.cases[i], result.profile); });
  for (std::size_t i = 0; i < family.cases.size(); ++i) {
    const Case& one = family.cases[i];
    result.rows.push_back({one.id, one.fitted, one.complete, one.measured_s, one.before_s, after[i]});
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
  std::map<std::string, Family> families = read_families(request, shelf, progress, fits);
  if (families.empty()) {
    throw UserError(Diagnostic{.where = {request.file, 0, 0}, .path = request.family ? "--family" : "--table",
                               .problem = "no row to fit", .expected = "rows with a step time that can be forecast, of that family",
                               .got = request.family.value_or("")});
  }
  std::vector<double> shipped;
  for (const auto& [name, family] : families) {
    for (const Case& one : family.cases) {
      if (const auto error = relative_pct(one.before_s, one.measured_s)) shipped.push_back(*error);
    }
  }
  fits.shipped = sum_up(shipped);
  for (auto& [name, family] : families) {
    const std::size_t fitted = rows_dealt(family.cases.size(), request.share);
    if (fitted == 0 || fitted >= family.cases.size()) {
      if (!request.family) continue;
      throw UserError(Diagnostic{.path = "--rows", .problem = fmt::format("{} of {} rows of {} would be fitted", fitted, family.cases.size(), name),
                                 .expected = "at least one, and one left to try the fit on"});
    }
    fits.families.push_back(fit_family(request, shelf, name, family, progress));
  }
  return fits;
}

std::string step_fit_text(const StepFits& fits) {
  std::string text;
  const auto errors = [&](std::span<const StepFit> of) {
    text += fmt::format("  {:<12} {:>5} {:>9} {:>9} {:>9} {:>10}   {:>9} {:>9} {:>9} {:>10}\n", "", "rows", "mean", "median", "worst", "signed", "mean", "median", "worst", "signed");
    text += error_line("fitted", errors_of(of, true, false), errors_of(of, true, true));
    text += error_line("held out", errors_of(of, false, false), errors_of(of, false, true));
    const ErrorSummary complete = errors_of(of, false, true, true);
    if (complete.n > 0) text += error_line("  complete", errors_of(of, false, false, true), complete);
    text += "\n";
  };
  for (const StepFit& fit : fits.families) {
    text += fmt::format("{}\n  {:<34} {:>12} {:>12} {:>12} {:>9}\n", fit.family, "figure", "before", "fitted", "+-", "informed");
    for (const StepFigure& f : fit.figures) text += fmt::format("  {:<34} {:>12} {:>12} {:>12} {:>7.0f} %\n", f.key, f.before, f.after, f.plus_minus, 100 * f.informed);
    text += fmt::format("  each fitted row left out in turn: {:.1f} % off in the mean, {:.1f} % with the profile as it was{}\n", 100 * fit.left_out, 100 * fit.left_out_before,
                        fit.helps ? "" : ": it stays as it was");
    errors({&fit, 1});
  }
  if (fits.families.size() > 1) {
    text += "all\n";
    errors(fits.families);
  }
  const ErrorSummary& e = fits.shipped;
  text += fmt::format("as profiles were: {} rows, {} forecast, {} refused or without a step time: mean {}, median {}, worst {}, signed {}\n", fits.rows, e.n, fits.rows - e.n,
                      or_dash(e.mean_absolute, " %"), or_dash(e.median_absolute, " %"), or_dash(e.worst_absolute, " %"), or_dash(e.mean_signed, " %"));
  return text;
}

nlohmann::ordered_json step_fit_json(const StepFits& fits) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const StepFit& fit : fits.families) {
    nlohmann::ordered_json figures = nlohmann::ordered_json::object();
    for (const StepFigure& f : fit.figures) figures[f.key] = {{"before", f.before}, {"fitted", f.after}, {"plus_minus", f.plus_minus}, {"informed", f.informed}};
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    for (const StepFitRow& row : fit.rows)
      rows.push_back({{"row_id", row.id}, {"fitted", row.fitted}, {"complete", row.complete}, {"measured_step_s", row.measured_s}, {"before_step_s", row.before_s}, {"after_step_s", row.after_s}});
    out.push_back({{"family", fit.family}, {"figures", std::move(figures)}, {"left_out_pct", 100 * fit.left_out}, {"left_out_before_pct", 100 * fit.left_out_before}, {"helps", fit.helps},
                   {"fitted", {{"before", errors_json(fit.errors(true, false))}, {"after", errors_json(fit.errors(true, true))}}},
                   {"held_out", {{"before", errors_json(fit.errors(false, false))}, {"after", errors_json(fit.errors(false, true))}}},
                   {"held_out_complete", {{"before", errors_json(errors_of({&fit, 1}, false, false, true))}, {"after", errors_json(errors_of({&fit, 1}, false, true, true))}}},
                   {"rows", std::move(rows)}});
  }
  return out;
}

}  // namespace stepcast::app
