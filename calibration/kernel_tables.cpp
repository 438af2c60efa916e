#include "calibration/kernel_tables.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <tuple>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "calibration/kernel_forecast.hpp"
#include "calibration/kernel_rows.hpp"
#include "calibration/names.hpp"

namespace stepcast::calibration {

namespace {

double forecast(const KernelForecast& model, KernelKind kind, const KernelRow& row, plan::Dtype dtype) {
  const auto& s = row.shape;
  switch (kind) {
    case KernelKind::kGemm: return model.gemm_seconds(s[0], s[1], s[2], dtype);
    case KernelKind::kAttention: return model.attention_seconds({s[0], s[1], s[2], s[3], s[4], row.vllm}, dtype);
    case KernelKind::kMoe:
      return model.moe_seconds({s[0], s[1], s[2], s[3], s[4], s[5], s[6], row.power_law, row.gated}, dtype);
  }
  return 0;
}

// Nearest rank.
double percentile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(values.size())));
  return values[std::clamp<std::size_t>(rank, 1, values.size()) - 1];
}

KernelErrors errors_of(const std::vector<double>& signed_errors) {
  std::vector<double> absolute;
  for (const double e : signed_errors) absolute.push_back(std::abs(e));
  return {.n = static_cast<std::int64_t>(signed_errors.size()),
          .median_ape_pct = 100 * percentile(absolute, 0.5),
          .p95_ape_pct = 100 * percentile(absolute, 0.95),
          .median_error_pct = 100 * percentile(signed_errors, 0.5)};
}

// What is known of one GPU of the table.
struct Candidate {
  std::unique_ptr<KernelForecast> model;  // null: refused
  std::string profile;
  std::string refusal;
};

Candidate candidate(const std::string& name, const FindGpu& find_gpu, const std::vector<Profile>& profiles) {
  Candidate c;
  const topology::Gpu* gpu = find_gpu(name);
  if (gpu == nullptr) {
    c.refusal = "not in the catalogue";
    return c;
  }
  const ChosenProfile chosen = choose_profile(profiles, *gpu);
  c.model = std::make_unique<KernelForecast>(*gpu, chosen.profile);
  c.profile = chosen.profile.name + (chosen.own ? "" : " (assumed)");
  return c;
}

}  // namespace

FindGpu find_in(const topology::Catalogue& catalogue) {
  std::map<std::string, const topology::Gpu*> by_name;
  for (const auto& [key, gpu] : catalogue.gpus) {
    by_name.emplace(plain_name(key), &gpu);
    for (const std::string& alias : gpu.aliases) by_name.emplace(plain_name(alias), &gpu);
  }
  return [by_name = std::move(by_name)](const std::string& name) -> const topology::Gpu* {
    const auto found = by_name.find(plain_name(name));
    return found == by_name.end() ? nullptr : found->second;
  };
}

KernelReport validate_kernels(const std::string& path, const FindGpu& find_gpu,
                              const std::vector<Profile>& profiles, const KernelFilter& filter) {
  const KernelRows table = read_kernel_rows(path);
  KernelReport report{.source = path, .kind = name_of(table.kind), .errors = {}, .profiles = {}, .refused = {}};
  std::map<std::string, Candidate> candidates;
  std::map<std::pair<std::string, std::string>, std::vector<double>> errors;
  std::map<std::tuple<std::string, std::string, std::string>, std::int64_t> refused;
  for (const KernelRow& row : table.rows) {
    if (flops_of(table.kind, row) < filter.least_flops) continue;
    if (filter.half && half_of(row) != *filter.half) continue;
    if (!candidates.contains(row.gpu)) candidates.emplace(row.gpu, candidate(row.gpu, find_gpu, profiles));
    const Candidate& c = candidates.at(row.gpu);
    const auto dtype = kernel_dtype(row.dtype);
    std::string reason = c.refusal;
    if (reason.empty() && !dtype) reason = "dtype is not modelled";
    if (reason.empty() && !c.model->supports(*dtype)) reason = "the catalogue quotes no rate for this dtype";
    if (!reason.empty()) {
      ++refused[{row.gpu, row.dtype, reason}];
      continue;
    }
    errors[{row.gpu, row.dtype}].push_back(forecast(*c.model, table.kind, row, *dtype) / row.seconds - 1.0);
    report.profiles[row.gpu] = c.profile;
  }
  for (const auto& [key, list] : errors) report.errors[key.first][key.second] = errors_of(list);
  for (const auto& [key, n] : refused)
    report.refused.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), n});
  return report;
}

std::string to_text(const KernelReport& report) {
  std::string text = fmt::format("{} kernels of {}\n{:<22} {:<10} {:>6} {:>12} {:>9} {:>14}  {}\n", report.kind,
                                 report.source, "gpu", "dtype", "n", "median APE", "p95 APE", "median error", "profile");
  for (const auto& [gpu, by_dtype] : report.errors)
    for (const auto& [dtype, e] : by_dtype)
      text += fmt::format("{:<22} {:<10} {:>6} {:>10.1f} % {:>7.1f} % {:>+12.1f} %  {}\n", gpu, dtype, e.n,
                          e.median_ape_pct, e.p95_ape_pct, e.median_error_pct, report.profiles.at(gpu));
  for (const RefusedRows& r : report.refused)
    text += fmt::format("refused: {} {} ({} rows): {}\n", r.gpu, r.dtype, r.n, r.reason);
  return text;
}

std::string to_json(const KernelReport& report) {
  nlohmann::json root = nlohmann::json::object();
  for (const auto& [gpu, by_dtype] : report.errors)
    for (const auto& [dtype, e] : by_dtype)
      root[gpu][dtype] = {{"n", e.n}, {"median_ape_pct", e.median_ape_pct}, {"p95_ape_pct", e.p95_ape_pct}};
  return root.dump(2) + "\n";
}

}  // namespace stepcast::calibration
