#include "app/forecast/start_memory.hpp"

#include <fmt/format.h>

#include "sim/base/text.hpp"

namespace stepcast::app {

std::vector<StartPeak> start_peaks(const Forecast& forecast, const std::vector<parallel::LoadPeak>& loads) {
  const run::MemoryPeak& step = forecast.worst_memory();
  std::vector<StartPeak> peaks;
  for (const parallel::LoadPeak& load : loads) {
    const Bytes peak = load.peak + step.context + step.communicators;
    peaks.push_back({load.way, peak, peak <= forecast.device_memory});
  }
  return peaks;
}

std::string start_text(const std::vector<StartPeak>& peaks, Bytes device_memory) {
  std::string text = "Before the first step, the fullest worker by the way its model comes to be\n";
  for (const StartPeak& peak : peaks) {
    text += fmt::format("  {:<31} {:>9}{}\n", peak.way, human_bytes(peak.peak),
                        peak.fits ? "" : fmt::format("  does not fit in {}", human_bytes(device_memory)));
  }
  return text;
}

nlohmann::ordered_json to_json(const std::vector<StartPeak>& peaks) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const StartPeak& peak : peaks) list.push_back({{"way", peak.way}, {"device_memory_peak_bytes", peak.peak.count()}, {"fits", peak.fits}});
  return list;
}

}  // namespace stepcast::app
