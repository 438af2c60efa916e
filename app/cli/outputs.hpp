// app/cli/outputs.hpp — whether a command's files can be written, asked before its work and not after it.
#pragma once

#include <string>

#include "app/cli/command.hpp"

namespace stepcast::app {

// Files of --json, --trace, --csv, --svg, --into and --output, where "FOLDER/" is a folder that is still to be made; and databases of
// --db where the command appends to them. Throws SystemError, or UserError for a database that is none; leaves nothing behind.
void expect_outputs(const Command& command, const Invocation& invocation);

}  // namespace stepcast::app
