#include "app/validate/error_summary.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace stepcast::app {
namespace {

double mean(const std::vector<double>& values) {
  double sum = 0.0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2.0;
}

}  // namespace

ErrorSummary sum_up(const std::vector<double>& errors) {
  if (errors.empty()) return {};
  std::vector<double> absolute;
  for (const double error : errors) absolute.push_back(std::abs(error));
  return {.n = errors.size(),
          .mean_absolute = mean(absolute),
          .median_absolute = median(absolute),
          .worst_absolute = *std::max_element(absolute.begin(), absolute.end()),
          .mean_signed = mean(errors)};
}

std::optional<double> relative_pct(std::optional<double> forecast, std::optional<double> measured) {
  if (!forecast || !measured || *measured <= 0.0) return std::nullopt;
  return (*forecast / *measured - 1.0) * 100.0;
}

std::string or_dash(std::optional<double> value, const char* unit, int decimals) {
  return value ? fmt::format("{:.{}f}{}", *value, decimals, unit) : "-";
}

}  // namespace stepcast::app
