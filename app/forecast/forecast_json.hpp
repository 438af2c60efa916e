// app/forecast/forecast_json.hpp — the contract's JSON of one forecast: flat, SI units, keys in a fixed order.
// What is not determined is null. Only simulator.wall_s and simulator.peak_rss_bytes differ between
// two runs of the same scenario.
#pragma once

#include <nlohmann/json.hpp>

#include "app/forecast/forecast.hpp"

namespace stepcast::app {

nlohmann::ordered_json forecast_json(const Forecast& forecast);
nlohmann::ordered_json memory_json(const Forecast& forecast);  // per pipeline stage

// Indented, with a final newline.
std::string json_text(const nlohmann::ordered_json& json);

}  // namespace stepcast::app
