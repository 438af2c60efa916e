// The command line as users meet it: exit statuses, the one clear error, help that lists everything.
#include <doctest/doctest.h>

#include "tests/support/program.hpp"

using stepcast::test::Outcome;
using stepcast::test::run_shell;
using stepcast::test::run_stepcast;

TEST_SUITE_BEGIN("e2e");

TEST_CASE("command line: --help and --version succeed on standard output") {
  for (const char* arguments : {"--help", "help", "completion --help", "help completion"}) {
    CAPTURE(arguments);
    const Outcome outcome = run_stepcast(arguments);
    CHECK(outcome.status == 0);
    CHECK(outcome.out.find("stepcast") != std::string::npos);
    CHECK(outcome.err.empty());
  }
  CHECK(run_stepcast("--version").out.starts_with("stepcast "));
}

TEST_CASE("command line: no arguments is bad input, with the help on standard error") {
  const Outcome outcome = run_stepcast("");
  CHECK(outcome.status == 2);
  CHECK(outcome.out.empty());
  CHECK(outcome.err.find("usage: stepcast COMMAND") != std::string::npos);
}

TEST_CASE("command line: an unknown command names the nearest one") {
  const Outcome outcome = run_stepcast("completoin bash");
  CHECK(outcome.status == 2);
  CHECK(outcome.err.starts_with("error: unknown command 'completoin'\n"));
  CHECK(outcome.err.find("did you mean 'completion'?") != std::string::npos);
}

TEST_CASE("command line: an unknown option names the nearest one") {
  const Outcome outcome = run_stepcast("man --hlep");
  CHECK(outcome.status == 2);
  CHECK(outcome.err.find("unknown option '--hlep'") != std::string::npos);
  CHECK(outcome.err.find("did you mean '--help'?") != std::string::npos);
}

TEST_CASE("command line: options are never abbreviated") {
  CHECK(run_stepcast("man --hel").status == 2);
}

TEST_CASE("command line: missing, superfluous and unknown arguments") {
  CHECK(run_stepcast("completion").err.find("missing argument bash") != std::string::npos);
  CHECK(run_stepcast("completion bash bash").err.find("unexpected argument") != std::string::npos);
  CHECK(run_stepcast("completion bsh").err.find("did you mean 'bash'?") != std::string::npos);
  for (const char* arguments : {"completion", "completion bash bash", "completion bsh"}) {
    CHECK(run_stepcast(arguments).status == 2);
  }
}

TEST_CASE("command line: a full disk is a system error") {
  const Outcome outcome = run_shell(std::string{STEPCAST_PROGRAM} + " man > /dev/full");
  CHECK(outcome.status == 3);
  CHECK(outcome.err.find("cannot write to standard output") != std::string::npos);
}

TEST_CASE("command line: a reader that leaves early ends the program quietly") {
  const Outcome outcome =
      run_shell("bash -c 'set -o pipefail; trap \"\" PIPE; for i in 1 2 3; do " + std::string{STEPCAST_PROGRAM} +
                " man; done | head -n 1'");
  CHECK(outcome.err.find("error") == std::string::npos);
}

TEST_CASE("command line: the completion script is bash, and completes commands and options") {
  const std::string load = "source <(" + std::string{STEPCAST_PROGRAM} + " completion bash); ";
  const Outcome commands = run_shell(
      "bash -c '" + load + "COMP_WORDS=(stepcast comp); COMP_CWORD=1; _stepcast; echo \"${COMPREPLY[@]}\"'");
  CHECK(commands.status == 0);
  CHECK(commands.out.find("completion") != std::string::npos);
  const Outcome options = run_shell(
      "bash -c '" + load + "COMP_WORDS=(stepcast man --h); COMP_CWORD=2; _stepcast; echo \"${COMPREPLY[@]}\"'");
  CHECK(options.out == "--help\n");
}

TEST_CASE("command line: the man page lists every command that --help lists") {
  const std::string help = run_stepcast("--help").out;
  const std::string man = run_stepcast("man").out;
  std::istringstream lines(help.substr(help.find("Commands:\n") + 10));
  int commands = 0;
  for (std::string line; std::getline(lines, line) && line.starts_with("  ");) {
    if (line.starts_with("   ")) continue;  // a summary's continuation
    const std::string name = line.substr(2, line.find(' ', 2) - 2);
    CHECK_MESSAGE(man.find(".SS " + name + "\n") != std::string::npos, name);
    ++commands;
  }
  CHECK(commands >= 2);
}

TEST_SUITE_END();
