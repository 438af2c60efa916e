// app/cli/command_line.hpp — from argv to a command and its arguments. Anything wrong with them is a
// UserError that names the nearest valid word.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "app/cli/command.hpp"

namespace stepcast::app {

// The version of this build, "0.1.0".
std::string version();

// Throws UserError with the nearest command when there is none of that name.
const Command& find_command(std::span<const Command> commands, const std::string& name);

// Throws UserError: unknown option, missing value, too few or too many operands.
Invocation parse_arguments(const Command& command, const std::vector<std::string>& arguments);

// Runs `stepcast ARGUMENTS...`; what it returns is the exit status.
Status run_command_line(std::vector<std::string> arguments);

}  // namespace stepcast::app
