// `stepcast schema` and `stepcast init`: texts written from the scenario's key lists.
#include <filesystem>

#include <fmt/format.h>

#include "app/commands/commands.hpp"
#include "app/commands/common_options.hpp"
#include "sim/base/diagnostic.hpp"
#include "sim/base/file.hpp"
#include "sim/scenario/write.hpp"

namespace stepcast::app {
namespace {

Status init(const Invocation& invocation, Session&) {
  const std::string file = invocation.operands.empty() ? "-" : invocation.operands[0];
  std::error_code ignored;
  if (file != "-" && std::filesystem::exists(file, ignored) && !invocation.has("force")) {
    throw UserError(Diagnostic{.where = {file, 0, 0}, .problem = "exists already",
                               .hint = "another name, or --force to replace it"});
  }
  write_file(file, scenario::starter_scenario());
  if (file != "-") write_file("-", fmt::format("wrote {0}; next: stepcast simulate {0}\n", file));
  return Status::kDone;
}

OptionList init_options() {
  OptionList options;
  options.add_options()("force", "replace the file if it exists");
  return options;
}

}  // namespace

Command schema_command() {
  return {.name = "schema",
          .summary = "print the JSON Schema of scenario files",
          .operands = {},
          .details = "Editors with a YAML language server complete and check scenarios with it.",
          .options = {},
          .run = [](const Invocation&, Session&) {
            write_file("-", scenario::scenario_json_schema());
            return Status::kDone;
          }};
}

Command init_command() {
  return {.name = "init",
          .summary = "write a commented starter scenario",
          .operands = {.usage = "[FILE]", .min = 0, .max = 1},
          .details = "Every key with its sentence and default. Without FILE, to standard output.",
          .options = init_options(),
          .run = init};
}

}  // namespace stepcast::app
