// app/scenario/communication_choice.hpp — from a scenario's `communication:` to what the cost model of collectives takes.
#pragma once

#include "models/collective/cost.hpp"
#include "sim/scenario/training_sections.hpp"

namespace stepcast::app {

collective::Forced forced_choices(const scenario::Communication& communication);

// The parameters with the channels that the scenario gives, and CollNet where it is named.
collective::Parameters with_choices(collective::Parameters parameters, const scenario::Communication& communication);

}  // namespace stepcast::app
