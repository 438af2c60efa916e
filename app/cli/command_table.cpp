#include "app/cli/command.hpp"
#include "app/commands/commands.hpp"

namespace stepcast::app {

std::vector<Command> command_table() {
  std::vector<Command> table;
  table.push_back(simulate_command());
  table.push_back(compare_command());
  table.push_back(memory_command());
  table.push_back(plan_command());
  table.push_back(run_command());
  table.push_back(measure_command());
  table.push_back(topology_command());
  table.push_back(network_command());
  table.push_back(validate_command());
  table.push_back(import_command());
  table.push_back(calibrate_command());
  table.push_back(profile_command());
  table.push_back(list_command());
  table.push_back(init_command());
  table.push_back(schema_command());
  table.push_back(completion_command());
  table.push_back(man_command());
  return table;
}

}  // namespace stepcast::app
