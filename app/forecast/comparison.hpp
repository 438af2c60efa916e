// app/forecast/comparison.hpp — several forecasts side by side: which inputs differ, and why the results do.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "app/cli/terminal.hpp"
#include "app/forecast/forecast.hpp"

namespace stepcast::app {

struct InputDifference {
  std::string key;                   // "cluster.fabric.nic"
  std::vector<std::string> values;   // one a scenario; "-" where it has no such key
};
// Names and descriptions left out.
std::vector<InputDifference> differing_inputs(std::span<const scenario::Scenario> scenarios);

// Why each forecast is slower than the fastest: the parts of the step that grew most. Forecasts as
// fast as the fastest (to 0.1 %) are named together.
std::vector<std::string> explain(std::span<const Forecast> forecasts, std::span<const std::string> names);

std::string comparison_text(std::span<const Forecast> forecasts, std::span<const std::string> names,
                            const Terminal& terminal);

}  // namespace stepcast::app
