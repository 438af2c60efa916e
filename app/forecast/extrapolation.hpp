// app/forecast/extrapolation.hpp — what a forecast asks of its profile beyond the measurements that the profile's figures were fitted on
// (`fitted_on`). Nothing is refused: the model's form goes on, and the summary and the JSON say so.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/scenario/setup.hpp"

namespace stepcast::app {

// One line for each kind of kernel or collective that lies outside, with what was asked and what was fitted; empty: nothing does. Kernels
// beyond their range that take less than 1 % of the kernels' time are passed over: no forecast is that sure. Kinds of kernels without a
// range have figures with evidence of their own; collectives share theirs, so one that was not among the fitted is told.
// Nothing at all where the profile states no ranges.
std::optional<std::vector<std::string>> extrapolated(const Setup& setup);

}  // namespace stepcast::app
