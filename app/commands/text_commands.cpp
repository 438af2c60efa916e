// `stepcast completion` and `stepcast man`: texts written from the command table.
#include "app/cli/command_texts.hpp"
#include "app/commands/commands.hpp"
#include "sim/base/file.hpp"

namespace stepcast::app {

Command completion_command() {
  return {.name = "completion",
          .summary = "print the shell completion script",
          .operands = {.usage = "bash", .min = 1, .max = 1, .words = {"bash"}},
          .details = "For one session: source <(stepcast completion bash). An installed stepcast has it in "
                     "share/bash-completion/completions already.",
          .options = {},
          .run = [](const Invocation&, Session& session) {
            write_file("-", bash_completion(session.commands));
            return Status::kDone;
          }};
}

Command man_command() {
  return {.name = "man",
          .summary = "print the manual page (roff)",
          .operands = {},
          .details = "To read it: stepcast man | man -l -",
          .options = {},
          .run = [](const Invocation&, Session& session) {
            write_file("-", man_page(session.commands));
            return Status::kDone;
          }};
}

}  // namespace stepcast::app
