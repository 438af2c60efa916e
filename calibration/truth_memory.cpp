#include "calibration/truth_memory.hpp"

#include <cmath>

namespace stepcast::calibration {

const char* name_of(MemoryMeasure measure) {
  switch (measure) {
    case MemoryMeasure::kAllocated: return "allocated";
    case MemoryMeasure::kReserved: return "reserved";
    case MemoryMeasure::kDevice: return "device";
  }
  return "";
}

MemoryFigure memory_figure(std::optional<double> number, std::string_view kind) {
  const auto says = [&](std::string_view word) { return kind.find(word) != std::string_view::npos; };
  MemoryFigure figure;
  figure.out_of_memory = says("OOM");
  figure.last_rank = says("last global rank");
  if (says("reserved")) {
    figure.measure = MemoryMeasure::kReserved;
  } else if (says("allocated") || says("peak_memory_usage")) {
    figure.measure = MemoryMeasure::kAllocated;
  }
  constexpr double kGibibyte = 1073741824.0;
  constexpr double kGigabyte = 1e9;
  constexpr double kMost = 1e15;  // a petabyte a GPU
  if (!number) return figure;
  const double bytes = *number * (says("GB") ? kGigabyte : kGibibyte);
  if (bytes > 0.0 && bytes < kMost) figure.peak = Bytes{std::llround(bytes)};
  return figure;
}

}  // namespace stepcast::calibration
