// app/commands/validate_scenario.hpp — `stepcast validate S.yaml --db F`: a scenario's forecast against a measured run of it.
#pragma once

#include "app/cli/command.hpp"
#include "app/commands/common_options.hpp"

namespace stepcast::app {

// --db, --run, --tolerance, --trace, and those of scenarios.
void add_scenario_validation_options(OptionList& options);
Status validate_scenario(const Invocation& invocation, Session& session);

}  // namespace stepcast::app
