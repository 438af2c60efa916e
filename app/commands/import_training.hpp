// app/commands/import_training.hpp — the kinds of `stepcast import` that describe a training run.
#pragma once

#include <string>
#include <vector>

#include "app/cli/command.hpp"
#include "app/commands/common_options.hpp"

namespace stepcast::app {

// deepspeed, accelerate, megatron, torchtitan.
std::vector<std::string> training_kinds();
void add_training_import_options(OptionList& options);
// Every key and what was made of it, for people and as JSON; with -o, a scenario. Exits 1 where that scenario
// is refused as it stands.
Status import_training_file(const std::string& kind, const std::string& file, const Invocation& invocation, Session& session);

}  // namespace stepcast::app
