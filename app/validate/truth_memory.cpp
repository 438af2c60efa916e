#include "app/validate/truth_memory.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace stepcast::app {
namespace {

using calibration::MemoryFigure;
using calibration::MemoryMeasure;

Bytes counted(const run::MemoryPeak& peak, MemoryMeasure measure) {
  const Bytes reserved = peak.total - peak.context - peak.communicators;
  switch (measure) {
    case MemoryMeasure::kAllocated: return reserved - peak.fragmentation;
    case MemoryMeasure::kReserved: return reserved;
    case MemoryMeasure::kDevice: return peak.total;
  }
  return peak.total;
}

const run::MemoryPeak& of_last_stage(const Forecast& forecast) {
  const plan::ProgramId last = forecast.plan.program_of_stage.back();
  return *std::find_if(forecast.result.memory.begin(), forecast.result.memory.end(),
                       [&](const run::MemoryPeak& peak) { return peak.program == last; });
}

std::string text(const std::string& family, const MemorySummary& s) {
  std::string line = fmt::format("  {:<28} {:>4} rows: mean absolute error {}, median {}, worst {}, mean signed {}", family, s.errors.n,
                                 or_dash(s.errors.mean_absolute, " %"), or_dash(s.errors.median_absolute, " %"),
                                 or_dash(s.errors.worst_absolute, " %"), or_dash(s.errors.mean_signed, " %"));
  if (s.out_of_memory > 0) line += fmt::format("; out of memory {}, of them forecast not to fit {}", s.out_of_memory, s.foreseen);
  return line + "\n";
}

nlohmann::ordered_json or_null(std::optional<double> value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}

}  // namespace

std::optional<double> ComparedMemory::error_pct() const {
  if (!measured.peak) return std::nullopt;
  return relative_pct(forecast.si(), measured.peak->si());
}

ComparedMemory compared_memory(const Forecast& forecast, const MemoryFigure& figure) {
  ComparedMemory result{.measured = figure, .forecast = Bytes{0}, .fits = forecast.fits()};
  if (figure.last_rank) {
    result.forecast = counted(of_last_stage(forecast), figure.measure);
    return result;
  }
  for (const run::MemoryPeak& peak : forecast.result.memory) {
    result.forecast = std::max(result.forecast, counted(peak, figure.measure));
  }
  return result;
}

MemorySummary sum_up(const std::vector<ComparedMemory>& rows) {
  MemorySummary summary;
  std::vector<double> errors;
  for (const ComparedMemory& row : rows) {
    if (const auto error = row.error_pct()) errors.push_back(*error);
    if (!row.measured.out_of_memory) continue;
    ++summary.out_of_memory;
    if (!row.fits) ++summary.foreseen;
  }
  summary.errors = sum_up(errors);
  return summary;
}

std::string memory_summary_text(const std::map<std::string, std::vector<ComparedMemory>>& by_family) {
  std::string lines;
  for (const auto& [family, rows] : by_family) lines += text(family, sum_up(rows));
  return lines;
}

nlohmann::ordered_json to_json(const MemorySummary& s) {
  return {{"n", s.errors.n},
          {"mape_pct", or_null(s.errors.mean_absolute)},
          {"median_ape_pct", or_null(s.errors.median_absolute)},
          {"worst_ape_pct", or_null(s.errors.worst_absolute)},
          {"bias_pct", or_null(s.errors.mean_signed)},
          {"out_of_memory", s.out_of_memory},
          {"out_of_memory_foreseen", s.foreseen}};
}

}  // namespace stepcast::app
