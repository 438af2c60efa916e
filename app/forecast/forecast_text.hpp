// app/forecast/forecast_text.hpp — what a person reads on the terminal.
#pragma once

#include <span>
#include <string>

#include "app/cli/terminal.hpp"
#include "app/forecast/forecast.hpp"

namespace stepcast::app {

std::string summary_text(const Forecast& forecast, const Terminal& terminal);
// One bar a part that is not zero, and the total that they add up to.
std::string breakdown_text(const Forecast& forecast, const Terminal& terminal);
std::string memory_text(const Forecast& forecast, const Terminal& terminal);  // per stage and category
// Empty when it fits: which worker runs out, where, and what it holds.
std::string out_of_memory_text(const Forecast& forecast);
std::string evidence_text(const Forecast& forecast);

}  // namespace stepcast::app
