#include "calibration/kernel_fit.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "calibration/profile_parameters.hpp"
#include "models/gpu/memory_bound.hpp"
#include "sim/base/check.hpp"

namespace stepcast::calibration {
namespace {

// A figure that may be fitted: which kinds of kernel tell of it, and how far from its prior it may be.
struct Candidate {
  const char* key;
  KernelPart part;
  double prior_deviation;  // of its logarithm, or of its share where the scale is linear
  FitScale scale = FitScale::kLogarithm;
  bool vllm = false;  // told by its kernels alone
};

// Deviations of priors: efficiencies differ by a third between generations, overheads and rates inside the chip by factors.
const std::vector<std::vector<Candidate>>& stages() {
  using enum KernelPart;
  static const std::vector<std::vector<Candidate>> kStages{
      {{"gemm.mma_efficiency", kProducts, 0.3},
       {"gemm.memory_efficiency", kProducts, 0.3},
       {"gemm.operand_bytes_per_clock", kProducts, 0.7},
       {"gemm.sm_bytes_per_clock", kProducts, 0.7},
       {"gemm.tile_overhead", kProducts, 1.0},
       {"gemm.split_k_cost", kProducts, 1.0},
       {"clock.sustained_fraction", kProducts, 0.15},
       {"overhead.kernel_latency", kProducts, 0.7},
       {"overhead.kernel_latency", kStreams, 0.7},
       {"memory.streaming_efficiency", kStreams, 0.3},
       {"memory.l2_bytes_per_clock", kStreams, 0.7},
       {"memory.reduction_efficiency", kReductions, 0.3}},
      {{"gemm.fp8_mma_efficiency", kFp8Products, 0.3}},
      {{"attention.mma_efficiency", kAttention, 0.3},
       {"attention.scores_per_clock", kAttention, 0.7},
       {"attention.softmax_overlap", kAttention, 0.5, FitScale::kLinear},
       {"attention.block_overhead", kAttention, 1.0},
       {"attention.tail_share", kAttention, 0.5, FitScale::kLinear},
       {"attention.engine_overhead", kAttention, 1.0},
       {"attention.cache_efficiency", kAttention, 0.5},
       {"attention.vllm_rate", kAttention, 0.3, FitScale::kLogarithm, true},
       {"attention.vllm_overhead", kAttention, 1.0, FitScale::kLogarithm, true},
       {"attention.vllm_cache_efficiency", kAttention, 0.5, FitScale::kLogarithm, true},
       {"clock.attention_fraction", kAttention, 0.15}},
      {{"attention.backward_mma_efficiency", kAttentionBackward, 0.3}}};
  return kStages;
}

// Figures of the first stage that other kernels depend on, too. Later stages hold them only as tightly as the first knew them, so that
// what it did not know is part of the later figures' deviations; what they would make of them is not kept.
constexpr std::array kShared{"overhead.kernel_latency", "clock.sustained_fraction"};

bool tells(const KernelPoint& point, const Candidate& candidate) { return point.part == candidate.part && (!candidate.vllm || point.vllm); }

bool kept(const FitNotes& notes, const Candidate& candidate) { return std::find(notes.kept.begin(), notes.kept.end(), candidate.key) != notes.kept.end(); }

bool in_stage(const std::vector<Candidate>& stage, KernelPart part) {
  return std::any_of(stage.begin(), stage.end(), [&](const Candidate& c) { return c.part == part; });
}

// The stage's figures that these points may tell of and that the prior has.
std::vector<FreeFigure> free_figures(const std::vector<Candidate>& stage, std::span<const KernelPoint* const> points, const Profile& prior, const FitNotes& notes) {
  std::vector<FreeFigure> free;
  const std::vector<ProfileParameter> known = parameters_of(prior);
  for (const Candidate& c : stage) {
    const bool told = std::any_of(points.begin(), points.end(), [&](const KernelPoint* p) { return tells(*p, c); }) && !kept(notes, c);
    const bool twice = std::any_of(free.begin(), free.end(), [&](const FreeFigure& f) { return f.key == c.key; });
    const auto parameter = std::find_if(known.begin(), known.end(), [&](const ProfileParameter& p) { return p.key == c.key; });
    if (!told || twice || parameter == known.end()) continue;
    if (c.scale == FitScale::kLogarithm && parameter->value <= 0.0) continue;  // none of it: k is not cut, say
    free.push_back({.key = c.key, .prior = parameter->value, .low = parameter->low, .high = parameter->high, .prior_deviation = c.prior_deviation, .scale = c.scale});
  }
  return free;
}

// The shared figures beside a later stage's own.
std::vector<FreeFigure> shared_figures(const KernelFit& so_far, const FitNotes& notes) {
  std::vector<FreeFigure> shared;
  for (const ProfileParameter& p : parameters_of(so_far.profile)) {
    if (std::find(kShared.begin(), kShared.end(), p.key) == kShared.end() || p.value <= 0.0) continue;
    if (std::find(notes.kept.begin(), notes.kept.end(), p.key) != notes.kept.end()) continue;
    const auto fitted = std::find_if(so_far.figures.begin(), so_far.figures.end(), [&](const FittedFigure& f) { return f.key == p.key; });
    const auto candidate = std::find_if(stages().front().begin(), stages().front().end(), [&](const Candidate& c) { return c.key == p.key; });
    double deviation = candidate->prior_deviation;
    if (fitted != so_far.figures.end()) deviation = std::min(deviation, std::max(1e-3, fitted->plus_minus / fitted->value));
    shared.push_back({.key = p.key, .prior = p.value, .low = p.low, .high = p.high, .prior_deviation = deviation});
  }
  return shared;
}

constexpr double kInformed = 0.5;
constexpr int kStarts = 8;

double rounded(double value) {
  if (value == 0.0) return 0.0;
  const double scale = std::pow(10.0, 3.0 - std::floor(std::log10(std::abs(value))));
  return std::round(value * scale) / scale;
}

// Figures that a profile may lack and that attention tells.
template <class Use>
void attention_options(Profile& profile, Use use) {
  AttentionProfile& a = profile.attention;
  use("attention.tail_share", a.tail_share);
  use("attention.engine_overhead", a.engine_overhead);
  use("attention.cache_efficiency", a.cache_efficiency);
  use("attention.vllm_rate", a.vllm_rate);
  use("attention.vllm_overhead", a.vllm_overhead);
  use("attention.vllm_cache_efficiency", a.vllm_cache_efficiency);
  use("clock.attention_fraction", profile.clock.attention_fraction);
}

Profile with_attention_priors(Profile profile, bool vllm) {
  const auto assume = [](auto& figure, auto value) {
    if (!figure) figure = Figure<decltype(value)>{value, topology::Basis::kAssumed, "where a fit begins"};
  };
  constexpr double kOrderly = 0.1;    // longest items go first
  constexpr double kNearStreams = 0.9;
  const Duration two_kernels = Duration::microseconds(6);
  AttentionProfile& a = profile.attention;
  assume(a.tail_share, kOrderly);
  assume(a.engine_overhead, two_kernels);
  assume(a.cache_efficiency, kNearStreams);
  assume(profile.clock.attention_fraction, profile.clock.sustained_fraction.value);
  if (!vllm) return profile;
  assume(a.vllm_rate, 1.0);
  assume(a.vllm_overhead, two_kernels);
  assume(a.vllm_cache_efficiency, kNearStreams);
  return profile;
}

// Those of them that nothing told are not the profile's.
void drop_untold_priors(Profile& profile, Profile prior) {
  std::set<std::string> had;
  attention_options(prior, [&](const char* key, const auto& figure) {
    if (figure) had.insert(key);
  });
  attention_options(profile, [&](const char* key, auto& figure) {
    if (!had.contains(key) && figure && figure->basis == topology::Basis::kAssumed) figure.reset();
  });
}

void fit_stage(const std::vector<Candidate>& stage, std::span<const KernelPoint> points, const topology::Gpu& gpu, const FitNotes& notes, KernelFit& into) {
  std::vector<const KernelPoint*> mine;
  std::vector<std::size_t> index;
  std::vector<double> measured;
  std::vector<double> spread;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (!in_stage(stage, points[i].part)) continue;
    mine.push_back(&points[i]);
    index.push_back(i);
    measured.push_back(points[i].measured_s);
    spread.push_back(points[i].spread);
  }
  const std::vector<FreeFigure> own = free_figures(stage, mine, into.profile, notes);
  if (mine.empty() || own.empty()) return;
  const std::vector<FreeFigure> shared = &stage == &stages().front() ? std::vector<FreeFigure>{} : shared_figures(into, notes);
  const auto fit_of = [&](const std::vector<FreeFigure>& figures) {
    std::vector<FreeFigure> free = figures;
    free.insert(free.end(), shared.begin(), shared.end());
    Profile trial = into.profile;
    const Forecasts forecasts = [&](std::span<const double> values, std::span<double> seconds) {
      for (std::size_t j = 0; j < free.size(); ++j) set_parameter(trial, free[j].key, values[j]);
      const KernelForecast model{gpu, trial};
      for (std::size_t i = 0; i < mine.size(); ++i) seconds[i] = mine[i]->forecast_s(model);
    };
    return fit_robustly(measured, spread, free, forecasts, {.starts = kStarts});
  };
  RobustFit fit = fit_of(own);
  // What the points do not tell stays at its prior, and the others are fitted beside it.
  std::vector<FreeFigure> told;
  std::vector<FittedFigure> left;
  for (std::size_t j = 0; j < own.size(); ++j) {
    if (fit.figures[j].informed >= kInformed) {
      told.push_back(own[j]);
    } else {
      left.push_back(fit.figures[j]);
      left.back().value = own[j].prior;
    }
  }
  into.figures.insert(into.figures.end(), left.begin(), left.end());
  if (told.empty()) return;
  if (!left.empty()) fit = fit_of(told);
  for (std::size_t i = 0; i < index.size(); ++i) into.weights[index[i]] = fit.weights[i];
  for (std::size_t j = 0; j < told.size(); ++j) {
    const FittedFigure& figure = fit.figures[j];
    into.figures.push_back(figure);
    replace_figure(into.profile, figure.key, {.value = rounded(figure.value), .basis = topology::Basis::kMeasured,
                                              .source = fmt::format("{}, {} points", notes.source, mine.size()), .plus_minus = rounded(figure.plus_minus), .date = notes.date});
  }
}

std::uint64_t hash_of(const std::string& name) {
  std::uint64_t hash = 14695981039346656037ULL;  // FNV-1a
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return hash >> 20U;
}

ErrorsByPart summary(const std::map<KernelPart, std::vector<double>>& errors) {
  ErrorsByPart out;
  for (const auto& [part, list] : errors) {
    std::vector<double> absolute;
    for (const double e : list) absolute.push_back(std::abs(e));
    out[part] = {.n = list.size(), .median = median_of(absolute), .p95 = quantile_of(absolute, 0.95), .signed_median = median_of(list)};
  }
  return out;
}

void add_errors(std::span<const KernelPoint> points, const topology::Gpu& gpu, const Profile& profile, std::map<KernelPart, std::vector<double>>& errors) {
  const KernelForecast model{gpu, profile};
  for (const KernelPoint& p : points) errors[p.part].push_back(p.forecast_s(model) / p.measured_s - 1.0);
}

}  // namespace

const char* name_of(KernelPart part) {
  switch (part) {
    case KernelPart::kProducts: return "products";
    case KernelPart::kStreams: return "streams";
    case KernelPart::kReductions: return "reductions";
    case KernelPart::kFp8Products: return "fp8 products";
    case KernelPart::kAttention: return "attention";
    case KernelPart::kAttentionBackward: return "attention backward";
  }
  return "";
}

std::vector<KernelPoint> points_of(const KernelRows& table, const KernelForecast& supported) {
  constexpr double kLaunchBound = 1e9;   // [FLOP]
  constexpr double kLaunchSpread = 1.8;  // a weight of 0.3
  std::vector<KernelPoint> points;
  if (table.kind == KernelKind::kMoe) return points;  // several kernels, of frameworks' own
  for (const KernelRow& row : table.rows) {
    const auto dtype = kernel_dtype(row.dtype);
    if (!dtype || !supported.supports(*dtype)) continue;
    if (row.triton) continue;
    const bool fp8 = *dtype == plan::Dtype::kFp8;
    if (fp8 && (table.kind == KernelKind::kAttention || row.dtype != "fp8")) continue;  // kernels of other libraries
    KernelPoint p{.name = std::string{name_of(table.kind)} + ' ' + row.dtype, .part = {}, .work = flops_of(table.kind, row), .measured_s = row.seconds, .spread = 1, .forecast_s = {}};
    for (const std::int64_t side : row.shape) p.name += fmt::format(" {}", side);
    if (p.work < kLaunchBound) p.spread = kLaunchSpread;
    if (table.kind == KernelKind::kGemm) {
      p.part = fp8 ? KernelPart::kFp8Products : KernelPart::kProducts;
      p.forecast_s = [s = row.shape, d = *dtype](const KernelForecast& model) { return model.gemm_seconds(s[0], s[1], s[2], d); };
    } else {
      p.part = KernelPart::kAttention;
      p.vllm = row.vllm;
      p.forecast_s = [s = row.shape, d = *dtype, vllm = row.vllm](const KernelForecast& model) { return model.attention_seconds({s[0], s[1], s[2], s[3], s[4], vllm}, d); };
    }
    points.push_back(std::move(p));
  }
  return points;
}

KernelFit fit_kernels(std::span<const KernelPoint> points, const topology::Gpu& gpu, const Profile& prior, const FitNotes& notes) {
  SIM_CHECK(!points.empty());
  const bool attends = std::any_of(points.begin(), points.end(), [](const KernelPoint& p) { return p.part == KernelPart::kAttention; });
  const bool vllm = std::any_of(points.begin(), points.end(), [](const KernelPoint& p) { return p.vllm; });
  KernelFit fit{.profile = prior, .figures = {}, .weights = std::vector<double>(points.size(), 1.0), .fitted = {}};
  for (const std::vector<Candidate>& stage : stages()) {
    if (attends && in_stage(stage, KernelPart::kAttention)) fit.profile = with_attention_priors(std::move(fit.profile), vllm);
    fit_stage(stage, points, gpu, notes, fit);
  }
  drop_untold_priors(fit.profile, prior);
  fit.fitted = errors_of(points, gpu, fit.profile);
  for (FittedRange& range : ranges_of(points)) {
    std::erase_if(fit.profile.fitted_on, [&](const FittedRange& old) { return old.kernels == range.kernels; });
    fit.profile.fitted_on.push_back(std::move(range));
  }
  return fit;
}

KernelPart part_of(const plan::Kernel& k) {
  if (k.op == plan::OpClass::kGemm) return k.dtype == plan::Dtype::kFp8 ? KernelPart::kFp8Products : KernelPart::kProducts;
  if (k.op == plan::OpClass::kAttention) return k.pass == plan::Pass::kForward ? KernelPart::kAttention : KernelPart::kAttentionBackward;
  return gpu::reduces_rows(k.op) ? KernelPart::kReductions : KernelPart::kStreams;
}

double work_of(const plan::Kernel& k) {
  const bool computes = k.op == plan::OpClass::kGemm || k.op == plan::OpClass::kAttention;
  return computes ? k.flops.si() : k.read.si() + k.written.si();
}

Profile beginning_at(Profile profile, const Profile& start, std::span<const KernelPoint> points, const FitNotes& notes) {
  const std::vector<ProfileParameter> known = parameters_of(start);
  for (const std::vector<Candidate>& stage : stages()) {
    for (const Candidate& c : stage) {
      const bool told = std::any_of(points.begin(), points.end(), [&](const KernelPoint& p) { return tells(p, c); });
      const auto from = std::find_if(known.begin(), known.end(), [&](const ProfileParameter& p) { return p.key == c.key; });
      if (!told || kept(notes, c)) continue;
      if (from != known.end()) {
        replace_figure(profile, c.key, {.value = from->value, .basis = topology::Basis::kAssumed, .source = "as profile " + start.name + ", where the search of every GPU begins"});
        continue;
      }
      attention_options(profile, [&](const std::string& key, auto& figure) {
        if (key == c.key) figure.reset();
      });
    }
  }
  return profile;
}

std::vector<FittedRange> ranges_of(std::span<const KernelPoint> points) {
  std::map<KernelPart, std::vector<double>> work;
  for (const KernelPoint& p : points) work[p.part].push_back(p.work);
  std::vector<FittedRange> ranges;
  for (const auto& [part, list] : work) {
    const auto [least, most] = std::minmax_element(list.begin(), list.end());
    FittedRange range{.kernels = name_of(part), .points = static_cast<std::int64_t>(list.size()), .least_work = {}, .most_work = {}, .least_bytes = {}, .most_bytes = {}, .least_ranks = {}, .most_ranks = {}};
    if (part == KernelPart::kStreams || part == KernelPart::kReductions) {
      range.least_bytes = Bytes{std::llround(*least)};
      range.most_bytes = Bytes{std::llround(*most)};
    } else {
      range.least_work = Flops::from_si(std::round(rounded(*least)));
      range.most_work = Flops::from_si(std::round(rounded(*most)));
    }
    ranges.push_back(range);
  }
  return ranges;
}

ErrorsByPart errors_of(std::span<const KernelPoint> points, const topology::Gpu& gpu, const Profile& profile) {
  std::map<KernelPart, std::vector<double>> errors;
  add_errors(points, gpu, profile, errors);
  return summary(errors);
}

HeldOut hold_out(std::span<const KernelPoint> points, const topology::Gpu& gpu, const Profile& prior, int folds, const FitNotes& notes, KernelFit& widened) {
  HeldOut held;
  const FitNotes none{.source = {}, .date = {}, .kept = notes.kept};
  std::map<KernelPart, std::vector<double>> errors;
  std::map<std::string, std::vector<double>> moved;
  for (int fold = 0; fold < folds; ++fold) {
    std::vector<KernelPoint> seen;
    std::vector<KernelPoint> unseen;
    for (const KernelPoint& p : points) (static_cast<int>(hash_of(p.name) % static_cast<std::uint64_t>(folds)) == fold ? unseen : seen).push_back(p);
    if (seen.empty() || unseen.empty()) continue;
    const KernelFit fit = fit_kernels(seen, gpu, prior, none);
    add_errors(unseen, gpu, fit.profile, errors);
    for (const FittedFigure& f : fit.figures) moved[f.key].push_back(f.value);
  }
  held.folds = summary(errors);
  for (FittedFigure& f : widened.figures) {
    const std::vector<double>& values = moved[f.key];
    if (values.size() < 3) continue;
    const auto k = static_cast<double>(values.size());
    double mean = 0;
    for (const double v : values) mean += v / k;
    double squares = 0;
    for (const double v : values) squares += (v - mean) * (v - mean);
    f.plus_minus = std::max(f.plus_minus, std::sqrt((k - 1.0) / k * squares));
    if (f.informed < kInformed) continue;
    change_figure(widened.profile, f.key, [&]<class F>(F& figure) { figure.plus_minus = detail::from_si<std::remove_cvref_t<decltype(figure.value)>>(rounded(f.plus_minus)); });
  }
  std::map<KernelPart, std::vector<double>> work;
  for (const KernelPoint& p : points) work[p.part].push_back(p.work);
  std::vector<KernelPoint> small;
  std::vector<KernelPoint> large;
  for (const KernelPoint& p : points) (p.work <= median_of(work[p.part]) ? small : large).push_back(p);
  if (!small.empty() && !large.empty()) held.larger_half = errors_of(large, gpu, fit_kernels(small, gpu, prior, none).profile);
  return held;
}

}  // namespace stepcast::calibration
