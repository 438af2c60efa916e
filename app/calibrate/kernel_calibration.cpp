#include "app/calibrate/kernel_calibration.hpp"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/forecast/forecast_json.hpp"
#include "calibration/kernel_tables.hpp"
#include "calibration/profile_parameters.hpp"
#include "sim/base/diagnostic.hpp"
#include "sim/base/text.hpp"

namespace stepcast::app {
namespace {

using calibration::ErrorsByPart;
using calibration::KernelPoint;

struct Split {
  std::vector<KernelPoint> fitted;
  std::vector<KernelPoint> other;
};

Split points_of(const KernelRequest& request, const topology::Gpu& gpu, const calibration::FindGpu& find, const calibration::KernelForecast& model) {
  Split split;
  for (const std::string& path : request.tables) {
    calibration::KernelRows table = calibration::read_kernel_rows(path);
    std::erase_if(table.rows, [&](const calibration::KernelRow& row) { return find(row.gpu) != &gpu; });
    const auto add = [&](int half, std::vector<KernelPoint>& to) {
      calibration::KernelRows part{.kind = table.kind, .rows = {}};
      std::copy_if(table.rows.begin(), table.rows.end(), std::back_inserter(part.rows), [&](const calibration::KernelRow& row) { return !request.half || calibration::half_of(row) == half; });
      std::vector<KernelPoint> points = calibration::points_of(part, model);
      std::move(points.begin(), points.end(), std::back_inserter(to));
    };
    add(request.half.value_or(0), split.fitted);
    if (request.half) add(1 - *request.half, split.other);
  }
  return split;
}

std::string lines(const char* title, const ErrorsByPart& errors) {
  std::string text;
  for (const auto& [part, e] : errors)
    text += fmt::format("  {:34} {:20} {:>6} {:>8.1f} % {:>8.1f} % {:>+8.1f} %\n", title, name_of(part), e.n, 100 * e.median, 100 * e.p95, 100 * e.signed_median);
  return text;
}

}  // namespace

nlohmann::ordered_json errors_json(const ErrorsByPart& errors) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const auto& [part, e] : errors) json[name_of(part)] = {{"n", e.n}, {"median", e.median}, {"p95", e.p95}, {"signed_median", e.signed_median}};
  return json;
}

KernelCalibration calibrate_kernels(const HardwareShelf& shelf, const KernelRequest& request) {
  const calibration::FindGpu find = calibration::find_in(shelf.catalogue);
  const topology::Gpu* gpu = find(request.gpu);
  if (gpu == nullptr) {
    std::vector<std::string> names;
    for (const auto& [name, entry] : shelf.catalogue.gpus) names.push_back(name);
    const auto near = nearest_word(request.gpu, names);
    throw UserError(Diagnostic{.path = "--gpu", .problem = "unknown GPU", .expected = "a GPU of the catalogue (stepcast list gpus)", .got = request.gpu,
                               .hint = near ? fmt::format("did you mean '{}'?", *near) : ""});
  }
  calibration::ChosenProfile chosen = calibration::choose_profile(shelf.profiles, *gpu);
  if (!chosen.own) {
    chosen.profile.name = gpu->name;
    chosen.profile.gpus = {gpu->name};
    chosen.profile.architectures.clear();
  }
  const Split split = points_of(request, *gpu, find, calibration::KernelForecast{*gpu, chosen.profile});
  if (split.fitted.empty()) {
    throw UserError(Diagnostic{.path = "--kernels", .problem = fmt::format("no row of {} that can be fitted", gpu->name),
                               .expected = "rows of products or attention in a number format that the catalogue quotes for it", .got = join(request.tables, ", ")});
  }
  KernelCalibration result;
  result.gpu = gpu->name;
  result.prior = request.start.empty() ? chosen.profile.name + (chosen.own ? "" : " (assumed)") : request.start;
  std::vector<std::string> files;
  for (const std::string& path : request.tables) files.push_back(std::filesystem::path{path}.filename().string());
  const std::string what = request.source.empty() ? join(files, ", ") : request.source;
  const calibration::FitNotes notes{.source = fmt::format("stepcast calibrate, {}{}", what, request.half ? fmt::format(", half {} of the shapes", *request.half) : ""), .date = request.date, .kept = {}};
  for (const std::string& key : request.kept) {
    if (!calibration::parameter_value(chosen.profile, key)) throw UserError(Diagnostic{.path = "--keep", .problem = "no such figure", .expected = "a key that `stepcast profile show " + chosen.profile.name + "` lists", .got = key});
  }
  const calibration::Profile own = chosen.profile;
  if (!request.start.empty()) {
    const auto start = std::find_if(shelf.profiles.begin(), shelf.profiles.end(), [&](const calibration::Profile& p) { return p.name == request.start; });
    if (start == shelf.profiles.end()) throw UserError(Diagnostic{.path = "--start", .problem = "unknown profile", .expected = "the name of a GPU's profile, such as generic", .got = request.start});
    chosen.profile = calibration::beginning_at(std::move(chosen.profile), *start, split.fitted, notes);
  }
  result.points = split.fitted.size();
  result.fit = calibration::fit_kernels(split.fitted, *gpu, chosen.profile, notes);
  result.outliers = static_cast<std::size_t>(std::count(result.fit.weights.begin(), result.fit.weights.end(), 0.0));
  if (request.folds > 1) result.held = calibration::hold_out(split.fitted, *gpu, chosen.profile, request.folds, notes, result.fit);
  if (request.half) result.other_half = calibration::errors_of(split.other, *gpu, result.fit.profile);
  for (const calibration::ProfileParameter& p : calibration::parameters_of(own)) {
    if (std::find(request.kept.begin(), request.kept.end(), p.key) == request.kept.end()) continue;
    calibration::replace_figure(result.fit.profile, p.key, {.value = p.value, .basis = p.basis, .source = p.source, .plus_minus = p.stated ? std::optional{p.plus_minus} : std::nullopt, .date = p.date});
  }
  return result;
}

std::string errors_text(const std::vector<std::pair<std::string, const ErrorsByPart*>>& rows) {
  std::string text = fmt::format("  {:34} {:20} {:>6} {:>10} {:>10} {:>10}\n", "error of", "kernels", "n", "median", "p95", "signed");
  for (const auto& [title, errors] : rows) text += lines(title.c_str(), *errors);
  return text;
}

std::string figures_text(const calibration::KernelFit& fit) {
  std::string text = fmt::format("\n  {:34} {:>12} {:>10}   told by the points\n", "figure (SI units)", "value", "+-");
  for (const calibration::FittedFigure& f : fit.figures)
    text += fmt::format("  {:34} {:>12.4g} {:>10.2g}   {:.0f} %{}\n", f.key, f.value, f.plus_minus, 100 * f.informed, f.informed < 0.5 ? ", left as it was" : "");
  return text;
}

nlohmann::ordered_json figures_json(const calibration::KernelFit& fit) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const calibration::FittedFigure& f : fit.figures) json.push_back({{"key", f.key}, {"value", f.value}, {"plus_minus", f.plus_minus}, {"informed", f.informed}});
  return json;
}

std::string calibration_text(const KernelCalibration& c) {
  std::string text = fmt::format("{}: {} points, {} of them outliers without a say; from profile {}\n\n", c.gpu, c.points, c.outliers, c.prior);
  std::vector<std::pair<std::string, const ErrorsByPart*>> rows{{"fitted points", &c.fit.fitted}, {"folds held out", &c.held.folds}, {"fit of smaller half on larger", &c.held.larger_half}};
  if (c.other_half) rows.emplace_back("the other half of the shapes", &*c.other_half);
  return text + errors_text(rows) + figures_text(c.fit);
}

std::string calibration_json(const KernelCalibration& c) {
  nlohmann::ordered_json json{{"kind", "calibrate"}, {"gpu", c.gpu}, {"prior", c.prior}, {"points", c.points}, {"outliers", c.outliers}};
  json["errors"] = {{"fitted", errors_json(c.fit.fitted)}, {"folds", errors_json(c.held.folds)}, {"larger_half", errors_json(c.held.larger_half)}};
  if (c.other_half) json["errors"]["other_half"] = errors_json(*c.other_half);
  json["figures"] = figures_json(c.fit);
  return json_text(json);
}

}  // namespace stepcast::app
