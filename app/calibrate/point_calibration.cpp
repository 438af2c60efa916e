#include "app/calibrate/point_calibration.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/calibrate/kernel_calibration.hpp"
#include "app/forecast/forecast_json.hpp"
#include "calibration/kernel_tables.hpp"
#include "calibration/robust_fit.hpp"
#include "sim/base/diagnostic.hpp"
#include "sim/base/text.hpp"

namespace stepcast::app {
namespace {

using calibration::KernelPart;
using calibration::KernelPoint;

// Keeps one machine's points. A profile of two would be one of neither.
void keep_one_machine(std::vector<StoredPoint>& points, const std::optional<std::string>& wanted) {
  std::set<std::string> machines;
  for (const StoredPoint& p : points) machines.insert(p.machine + " (" + p.backend + ")");
  if (wanted) {
    std::erase_if(points, [&](const StoredPoint& p) { return p.machine != *wanted && p.machine + " (" + p.backend + ")" != *wanted; });
    if (points.empty()) throw UserError(Diagnostic{.path = "--machine", .problem = "no points of it", .expected = one_of(std::vector<std::string>{machines.begin(), machines.end()}), .got = *wanted});
  }
  std::set<std::string> left;
  for (const StoredPoint& p : points) left.insert(p.machine + " (" + p.backend + ")");
  if (left.size() > 1) {
    throw UserError(Diagnostic{.path = "--db", .problem = "points of several machines", .expected = "--machine NAME", .got = join(std::vector<std::string>{left.begin(), left.end()}, ", "),
                               .hint = "a profile describes one"});
  }
}

KernelPoint kernel_point(const StoredPoint& p) {
  const plan::Kernel& k = *p.kernel;
  return {.name = p.name, .part = calibration::part_of(k), .work = calibration::work_of(k), .measured_s = p.seconds, .spread = 1,
          .forecast_s = [k](const calibration::KernelForecast& model) { return model.alone_seconds(k); }};
}

bool needs_rate(const plan::Kernel& k) { return k.op == plan::OpClass::kGemm || k.op == plan::OpClass::kAttention; }

CostFit fit_cost(const std::string& what, const std::vector<const StoredPoint*>& points, const std::string& source, const std::optional<std::string>& date) {
  std::vector<double> measured;
  double least_s = points.front()->seconds;
  double rate = 0;
  std::int64_t least = points.front()->bytes;
  std::int64_t most = least;
  for (const StoredPoint* p : points) {
    measured.push_back(p->seconds);
    least_s = std::min(least_s, p->seconds);
    rate = std::max(rate, static_cast<double>(p->bytes) / p->seconds);
    least = std::min(least, p->bytes);
    most = std::max(most, p->bytes);
  }
  const std::vector<calibration::FreeFigure> free{{.key = "latency", .prior = least_s / 2, .low = 1e-12, .high = 1e3, .prior_deviation = 2.0, .scale = calibration::FitScale::kLogarithm},
                                                  {.key = "bandwidth", .prior = rate, .low = 1.0, .high = 1e15, .prior_deviation = 1.0, .scale = calibration::FitScale::kLogarithm}};
  const auto forecast = [&](std::span<const double> f, std::span<double> seconds) {
    for (std::size_t i = 0; i < points.size(); ++i) seconds[i] = f[0] + static_cast<double>(points[i]->bytes) / f[1];
  };
  const calibration::RobustFit fit = calibration::fit_robustly(measured, {}, free, forecast);
  std::vector<double> errors;
  for (const double r : fit.residuals) errors.push_back(std::abs(std::expm1(r)));
  CostFit made{.cost = {.what = what, .latency = {}, .bandwidth = {}, .least = Bytes{least}, .most = Bytes{most}}, .points = points.size(), .median_error = calibration::median_of(errors)};
  const std::string text = fmt::format("{}, {} points", source, points.size());
  made.cost.latency = {Duration::from_seconds(fit.figures[0].value), topology::Basis::kMeasured, text, Duration::from_seconds(fit.figures[0].plus_minus), date};
  made.cost.bandwidth = {Bandwidth::from_si(fit.figures[1].value), topology::Basis::kMeasured, text, Bandwidth::from_si(fit.figures[1].plus_minus), date};
  return made;
}

struct Slowed {
  std::string what;
  std::string kernels;
  std::int32_t workers = 1;
  std::string beside;  // empty: the same kernels of other workers
  friend auto operator<=>(const Slowed&, const Slowed&) = default;
};

const StoredPoint* find_point(const std::vector<StoredPoint>& points, std::int32_t workers, const auto& is) {
  for (const StoredPoint& p : points)
    if (p.workers == workers && p.seconds > 0.0 && is(p)) return &p;
  return nullptr;
}

// "gemm 1024x1024x1024 bf16 beside all_reduce 1048576 x2": the product's time is known only where the other takes less, alone.
void add_beside(const std::vector<StoredPoint>& points, const StoredPoint& p, std::map<Slowed, std::vector<double>>& ratios) {
  const std::size_t at = p.name.find(" beside ");
  const std::string first = p.name.substr(0, at);
  const std::string other = p.name.substr(at + 8);
  const StoredPoint* alone = find_point(points, p.workers, [&](const StoredPoint& q) { return q.kernel && (q.name == first || q.name.starts_with(first + " ")); });
  const StoredPoint* moved = find_point(points, p.workers, [&](const StoredPoint& q) { return q.name == other || q.name.starts_with(other + " "); });
  if (alone == nullptr || moved == nullptr || moved->seconds >= alone->seconds) return;
  const std::string kind = other.substr(0, other.find_first_of("0123456789") - 1);
  const std::string kernels = name_of(calibration::part_of(*alone->kernel));
  ratios[{fmt::format("{} beside {}, {} workers", kernels, kind, p.workers), kernels, p.workers, kind}].push_back(p.seconds / alone->seconds);
}

// Equal kernels of one worker and of several: their names differ by what says how many. And kernels beside what takes less than they do.
std::vector<calibration::Interference> interference_of(const std::vector<StoredPoint>& points, const std::string& source, const std::optional<std::string>& date) {
  std::map<plan::Kernel, double> alone;
  for (const StoredPoint& p : points)
    if (p.kernel && p.workers == 1 && p.seconds > 0.0) alone[*p.kernel] = p.seconds;
  std::map<Slowed, std::vector<double>> ratios;
  for (const StoredPoint& p : points) {
    if (p.seconds <= 0.0) continue;
    if (p.beside) add_beside(points, p, ratios);
    if (!p.kernel || p.workers == 1 || !alone.contains(*p.kernel)) continue;
    const std::string kernels = name_of(calibration::part_of(*p.kernel));
    ratios[{fmt::format("{}, {} workers at once", kernels, p.workers), kernels, p.workers, ""}].push_back(p.seconds / alone.at(*p.kernel));
  }
  std::vector<calibration::Interference> list;
  for (const auto& [slowed, values] : ratios) {
    const double middle = calibration::median_of(values);
    std::vector<double> off;
    for (const double v : values) off.push_back(std::abs(v - middle));
    list.push_back({.what = slowed.what, .slowdown = {middle, topology::Basis::kMeasured, fmt::format("{}, {} points", source, values.size()), 1.4826 * calibration::median_of(off), date},
                    .kernels = slowed.kernels, .workers = slowed.workers, .beside = slowed.beside.empty() ? std::nullopt : std::optional{slowed.beside}});
  }
  return list;
}

}  // namespace

PointCalibration calibrate_points(const HardwareShelf& shelf, std::vector<StoredPoint> points, const PointRequest& request) {
  if (points.empty()) throw UserError(Diagnostic{.path = "--db", .problem = "no points of stepcast measure in it", .hint = "stepcast measure --db FILE"});
  keep_one_machine(points, request.machine);
  const std::string backend = points.front().backend;
  if (!request.gpu && backend != "cpu") throw UserError(Diagnostic{.path = "stepcast calibrate", .problem = "--gpu is missing", .expected = "the GPU whose points these are: a name of the catalogue", .got = "points of " + backend});
  const topology::Gpu* gpu = calibration::find_in(shelf.catalogue)(request.gpu.value_or("cpu-host"));
  if (gpu == nullptr) throw UserError(Diagnostic{.path = "--gpu", .problem = "unknown GPU", .expected = "a GPU of the catalogue (stepcast list gpus)", .got = *request.gpu});
  calibration::ChosenProfile chosen = calibration::choose_profile(shelf.profiles, *gpu);
  if (!chosen.own) {
    chosen.profile.name = gpu->name;
    chosen.profile.gpus = {gpu->name};
    chosen.profile.architectures.clear();
  }
  PointCalibration c;
  c.gpu = gpu->name;
  c.machine = points.front().machine;
  c.points = points.size();
  std::string last;
  for (const StoredPoint& p : points) last = std::max(last, p.created);
  const std::optional<std::string> date = last.size() >= 10 ? std::optional{last.substr(0, 10)} : std::nullopt;
  const std::string source = "stepcast calibrate, points of stepcast measure";
  const calibration::KernelForecast model{*gpu, chosen.profile};
  std::vector<KernelPoint> kernels;
  std::map<std::string, std::vector<const StoredPoint*>> costs;
  for (const StoredPoint& p : points) {
    c.throttled_samples += p.throttled;
    if (p.seconds <= 0.0) {
      c.throttled.push_back(p.name);
    } else if (p.kernel && p.workers == 1 && (!needs_rate(*p.kernel) || model.supports(p.kernel->dtype))) {
      kernels.push_back(kernel_point(p));
    } else if (!p.cost.empty()) {
      costs[p.workers == 1 ? p.cost : fmt::format("{} of {}", p.cost, p.workers)].push_back(&p);
    } else if (!(p.kernel && p.workers > 1) && !p.beside) {
      c.other.push_back(p.name);
    }
  }
  if (kernels.empty()) {
    throw UserError(Diagnostic{.path = "--db", .problem = "no kernel of one worker that " + gpu->name + " can run", .expected = "products, attention or streams that are not all throttled",
                               .hint = "stepcast measure --workers 1 --db FILE"});
  }
  c.kernels = kernels.size();
  c.before = calibration::errors_of(kernels, *gpu, chosen.profile);
  const calibration::FitNotes notes{.source = source, .date = date, .kept = {"clock.attention_fraction"}};  // runs at one clock do not tell it
  c.fit = calibration::fit_kernels(kernels, *gpu, chosen.profile, notes);
  for (std::size_t i = 0; i < kernels.size(); ++i)
    if (c.fit.weights[i] == 0.0) c.outliers.push_back(kernels[i].name);
  if (request.folds > 1) c.held = calibration::hold_out(kernels, *gpu, chosen.profile, request.folds, notes, c.fit);
  for (const auto& [what, list] : costs) c.costs.push_back(fit_cost(what, list, source, date));
  c.fit.profile.costs.clear();
  for (const CostFit& cost : c.costs) c.fit.profile.costs.push_back(cost.cost);
  c.fit.profile.interference = interference_of(points, source, date);
  c.fit.profile.note = fmt::format("Fitted to {} points of one machine by stepcast calibrate.", c.points);
  return c;
}

std::string point_calibration_text(const PointCalibration& c) {
  std::string text = fmt::format("{} on {}: {} points, {} kernels of one worker fitted\n", c.gpu, c.machine, c.points, c.kernels);
  const auto names = [&](const char* what, const std::vector<std::string>& list) {
    if (!list.empty()) text += fmt::format("  {} ({}): {}\n", what, list.size(), join(list, "; "));
  };
  names("outliers without a say", c.outliers);
  names("throttled, left out", c.throttled);
  names("not fitted", c.other);
  if (c.throttled_samples > 0) text += fmt::format("  throttled samples left out: {}\n", c.throttled_samples);
  text += '\n' + errors_text({{"with the profile as it is", &c.before}, {"fitted points", &c.fit.fitted}, {"folds held out", &c.held.folds}, {"fit of smaller half on larger", &c.held.larger_half}});
  text += figures_text(c.fit);
  if (!c.costs.empty()) text += fmt::format("\n  {:34} {:>12} {:>12} {:>10} {:>8}\n", "cost", "latency", "bandwidth", "error", "points");
  for (const CostFit& f : c.costs)
    text += fmt::format("  {:34} {:>12} {:>8.3g} GB/s {:>8.1f} % {:>8}\n", f.cost.what, human_duration(f.cost.latency.value), f.cost.bandwidth.value.si() * 1e-9, 100 * f.median_error, f.points);
  if (!c.fit.profile.interference.empty()) text += '\n';
  for (const calibration::Interference& i : c.fit.profile.interference) text += fmt::format("  {}: {:.2f} times +- {:.2f}\n", i.what, i.slowdown.value, i.slowdown.plus_minus.value_or(0.0));
  return text;
}

std::string point_calibration_json(const PointCalibration& c) {
  nlohmann::ordered_json json{{"kind", "calibrate"}, {"gpu", c.gpu}, {"machine", c.machine}, {"points", c.points}, {"kernels", c.kernels}, {"outliers", c.outliers}, {"throttled", c.throttled}, {"throttled_samples", c.throttled_samples}};
  json["errors"] = {{"before", errors_json(c.before)}, {"fitted", errors_json(c.fit.fitted)}, {"folds", errors_json(c.held.folds)}, {"larger_half", errors_json(c.held.larger_half)}};
  json["figures"] = figures_json(c.fit);
  json["costs"] = nlohmann::ordered_json::array();
  for (const CostFit& f : c.costs)
    json["costs"].push_back({{"what", f.cost.what}, {"latency_s", f.cost.latency.value.seconds()}, {"bandwidth_Bps", f.cost.bandwidth.value.si()}, {"points", f.points}, {"median_error", f.median_error}});
  json["interference"] = nlohmann::ordered_json::array();
  for (const calibration::Interference& i : c.fit.profile.interference) json["interference"].push_back({{"what", i.what}, {"slowdown", i.slowdown.value}});
  return json_text(json);
}

}  // namespace stepcast::app
