// app/commands/commands.hpp — one maker a command; each stands in its own file in this folder.
#pragma once

#include "app/cli/command.hpp"

namespace stepcast::app {

Command simulate_command();
Command compare_command();
Command memory_command();
Command plan_command();
Command run_command();
Command measure_command();
Command topology_command();
Command network_command();
Command validate_command();
Command list_command();
Command import_command();
Command calibrate_command();
Command profile_command();
Command schema_command();
Command init_command();
Command completion_command();
Command man_command();

}  // namespace stepcast::app
