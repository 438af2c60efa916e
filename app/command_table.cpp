#include "app/command.hpp"
#include "app/commands/commands.hpp"

namespace stepcast::app {

std::vector<Command> command_table() {
  std::vector<Command> table;
  table.push_back(completion_command());
  table.push_back(man_command());
  return table;
}

}  // namespace stepcast::app
