// app/cli/command_texts.hpp — texts written from the command table: help, man page, bash completion.
#pragma once

#include <span>
#include <string>

#include "app/cli/command.hpp"

namespace stepcast::app {

std::string usage_line(const Command& command);                  // stepcast plan [OPTION...] SCENARIO.yaml
std::string help_text(std::span<const Command> commands);        // stepcast --help
std::string help_text(const Command& command);                   // stepcast COMMAND --help
std::string man_page(std::span<const Command> commands);         // roff
std::string bash_completion(std::span<const Command> commands);

}  // namespace stepcast::app
