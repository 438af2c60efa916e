// app/commands/import_measurements.hpp — the kinds of `stepcast import` that are measurements of a run.
#pragma once

#include <string>
#include <vector>

#include "app/cli/command.hpp"
#include "app/commands/common_options.hpp"
#include "sim/trace/store.hpp"

namespace stepcast::app {

// nsys, kineto, nvidia-smi.
std::vector<std::string> measurement_kinds();
void add_measurement_import_options(OptionList& options);
Status import_measurement(const std::string& kind, const std::string& file, const Invocation& invocation);

// "stored as run 3 of runs.db", or that it is there already.
std::string stored_text(const trace::Store::Appended& stored, const std::string& database);

}  // namespace stepcast::app
