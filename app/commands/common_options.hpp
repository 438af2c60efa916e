// app/commands/common_options.hpp — options that several commands share, and what they do.
#pragma once

#include <string>
#include <vector>

#include "app/cli/command.hpp"
#include "app/forecast/forecast.hpp"
#include "app/scenario/setup.hpp"
#include "sim/scenario/load.hpp"

namespace stepcast::app {

using OptionList = boost::program_options::options_description;

// --set, --profile, --seed: changes to the scenario.
void add_scenario_options(OptionList& options);
// --no-fold
void add_simulation_options(OptionList& options);
// --json, --quiet
void add_output_options(OptionList& options);

// --set and its kin as assignments for the scenario reader.
std::vector<std::string> assignments(const Invocation& invocation);

// Text for people: standard output, unless --quiet was given or `--json -` takes it.
void print_text(const Invocation& invocation, const std::string& text);
void write_json(const Invocation& invocation, const std::string& text);

}  // namespace stepcast::app
