// app/validate/error_summary.hpp — relative errors of several forecasts in four numbers, all in per cent.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace stepcast::app {

// Empty where there is nothing to sum up.
struct ErrorSummary {
  std::size_t n = 0;
  std::optional<double> mean_absolute;
  std::optional<double> median_absolute;
  std::optional<double> worst_absolute;
  std::optional<double> mean_signed;
};
ErrorSummary sum_up(const std::vector<double>& errors);

// (forecast / measured - 1) in per cent; empty unless both are there and measured > 0.
std::optional<double> relative_pct(std::optional<double> forecast, std::optional<double> measured);

// "12.2 %", or "-".
std::string or_dash(std::optional<double> value, const char* unit, int decimals = 1);

}  // namespace stepcast::app
