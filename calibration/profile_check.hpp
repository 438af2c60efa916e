// calibration/profile_check.hpp — what a profile's figures must be to each other, beyond the range of each (their keys' rules).
#pragma once

#include <string>
#include <vector>

#include "calibration/profile.hpp"
#include "sim/base/diagnostic.hpp"
#include "sim/plan/plan.hpp"
#include "sim/scenario/positions.hpp"

namespace stepcast::calibration {

// "all_reduce between hosts": how `fitted_on` names a range of collectives.
std::string collective_range(plan::CollectiveKind kind, bool between_hosts);

// Adds a diagnostic for each range that ends before it begins, lacks an end or is of nothing that forecasts ask for, for each thing that is
// said twice, and for tiles of which none fits. `where`: positions of the file's keys.
void check_profile(const Profile& profile, const scenario::Positions& where, Diagnostics& diagnostics);

}  // namespace stepcast::calibration
