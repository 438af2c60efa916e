#include <fmt/format.h>

#include "app/calibrate/step_fit.hpp"
#include "app/validate/error_summary.hpp"

namespace stepcast::app {
namespace {

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
    text += fmt::format("  fitted rows by fits that did not see them: {:.1f} % off in the mean, {:.1f} % with the profile as it was{}\n", 100 * fit.left_out, 100 * fit.left_out_before,
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
