// app/commands/commands.hpp — one maker a command; each stands in its own file in this folder.
#pragma once

#include "app/command.hpp"

namespace stepcast::app {

Command completion_command();
Command man_command();

}  // namespace stepcast::app
