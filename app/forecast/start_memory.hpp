// app/forecast/start_memory.hpp — device memory while a model comes to be, before the first step: what the fullest worker's tool
// would show, beside the peak of the step.
//
// Model    load_peaks() of models/parallel/load_peak.hpp, the CUDA context and NCCL's buffers
// Ignores  workspaces of matrix libraries, which the first step makes
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/forecast/forecast.hpp"
#include "models/parallel/load_peak.hpp"

namespace stepcast::app {

struct StartPeak {
  std::string way;
  Bytes peak;
  bool fits = true;
};

std::vector<StartPeak> start_peaks(const Forecast& forecast, const std::vector<parallel::LoadPeak>& loads);
std::string start_text(const std::vector<StartPeak>& peaks, Bytes device_memory);
nlohmann::ordered_json to_json(const std::vector<StartPeak>& peaks);

}  // namespace stepcast::app
