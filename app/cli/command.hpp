// app/cli/command.hpp — what a command of `stepcast` is: plain data. --help, the man page and the bash
// completion are all written from this table, so none of them can disagree with the parser.
#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <boost/program_options.hpp>

#include "app/cli/terminal.hpp"
#include "app/scenario/data_files.hpp"

namespace stepcast::app {

enum class Status : int {
  kDone = 0,
  kAnswerIsNo = 1,  // does not fit, over tolerance
  kBadInput = 2,
  kInternal = 3,    // a bug of ours, or the system refused
};

struct Command;

// What every command gets beside its own arguments.
struct Session {
  Terminal terminal;
  DataFiles data;
  std::span<const Command> commands;
};

// One parsed command line.
struct Invocation {
  std::vector<std::string> operands;
  boost::program_options::variables_map options;

  [[nodiscard]] bool has(const std::string& option) const { return options.count(option) > 0; }
  // Empty when the option was not given.
  [[nodiscard]] std::optional<std::string> text(const std::string& option) const;
  [[nodiscard]] std::optional<std::int64_t> integer(const std::string& option) const;
  [[nodiscard]] std::vector<std::string> list(const std::string& option) const;
};

struct Operands {
  std::string usage;                      // "SCENARIO.yaml", "[NAME...]"
  std::size_t min = 0;
  std::size_t max = 0;
  std::vector<std::string> words;         // the only words accepted, e.g. bash; empty: files
  static constexpr std::size_t kAny = std::numeric_limits<std::size_t>::max();
};

struct Command {
  std::string name;
  std::string summary;                    // one line, no full stop
  Operands operands;
  std::string details;                    // paragraphs; what it answers and when it exits 1
  boost::program_options::options_description options;
  Status (*run)(const Invocation&, Session&);
};

// In the order in which --help lists them.
std::vector<Command> command_table();

}  // namespace stepcast::app
