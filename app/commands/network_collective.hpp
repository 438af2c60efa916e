// app/commands/network_collective.hpp — `stepcast network --collective`: its options, and what it does.
#pragma once

#include "app/commands/common_options.hpp"

namespace stepcast::app {

void add_collective_options(OptionList& options);

// Requires: --collective was given.
Status run_collective(const Invocation& invocation, Session& session);

}  // namespace stepcast::app
