#include "app/cli/command_line.hpp"

#include <algorithm>
#include <cstdio>

#include <fmt/format.h>

#include "app/cli/command_texts.hpp"
#include "app/cli/outputs.hpp"
#include "sim/base/diagnostic.hpp"
#include "sim/base/file.hpp"
#include "sim/base/text.hpp"

namespace stepcast::app {
namespace {

namespace po = boost::program_options;

constexpr const char* kOperand = "operand";

std::optional<std::string> suggestion(const std::string& word, const std::vector<std::string>& words) {
  const std::optional<std::string> near = nearest_word(word, words);
  if (!near) return std::nullopt;
  return fmt::format("did you mean '{}'?", *near);
}

std::vector<std::string> option_words(const Command& command) {
  std::vector<std::string> words{"--help"};
  for (const auto& option : command.options.options()) words.push_back("--" + option->long_name());
  return words;
}

[[noreturn]] void refuse_option(const Command& command, const std::string& option) {
  const std::vector<std::string> words = option_words(command);
  const std::string bare = option.substr(0, option.find('='));
  throw UserError(Diagnostic{.path = "stepcast " + command.name,
                             .problem = fmt::format("unknown option '{}'", bare),
                             .expected = one_of(words),
                             .hint = suggestion(bare, words).value_or("")});
}

void check_operands(const Command& command, const std::vector<std::string>& operands) {
  const Operands& wanted = command.operands;
  const std::string usage = usage_line(command);
  if (operands.size() < wanted.min) {
    throw UserError(Diagnostic{.path = "stepcast " + command.name,
                               .problem = fmt::format("missing argument {}", wanted.usage),
                               .expected = usage});
  }
  if (operands.size() > wanted.max) {
    throw UserError(Diagnostic{.path = "stepcast " + command.name,
                               .problem = fmt::format("unexpected argument '{}'", operands[wanted.max]),
                               .expected = usage});
  }
  if (wanted.words.empty()) return;
  for (const std::string& operand : operands) {
    if (std::find(wanted.words.begin(), wanted.words.end(), operand) != wanted.words.end()) continue;
    throw UserError(Diagnostic{.path = "stepcast " + command.name,
                               .problem = fmt::format("unknown argument '{}'", operand),
                               .expected = one_of(wanted.words),
                               .hint = suggestion(operand, wanted.words).value_or("")});
  }
}

void print(const std::string& text) { write_file("-", text); }

}  // namespace

std::string version() { return STEPCAST_VERSION; }

std::optional<std::string> Invocation::text(const std::string& option) const {
  if (!has(option)) return std::nullopt;
  return options[option].as<std::string>();
}

std::optional<std::int64_t> Invocation::integer(const std::string& option) const {
  if (!has(option)) return std::nullopt;
  return options[option].as<std::int64_t>();
}

std::vector<std::string> Invocation::list(const std::string& option) const {
  if (!has(option)) return {};
  return options[option].as<std::vector<std::string>>();
}

const Command& find_command(std::span<const Command> commands, const std::string& name) {
  std::vector<std::string> names;
  for (const Command& command : commands) {
    if (command.name == name) return command;
    names.push_back(command.name);
  }
  throw UserError(Diagnostic{.problem = fmt::format("unknown command '{}'", name),
                             .expected = one_of(names),
                             .hint = suggestion(name, names).value_or("`stepcast --help` lists the commands")});
}

Invocation parse_arguments(const Command& command, const std::vector<std::string>& arguments) {
  po::options_description all;
  all.add(command.options);
  all.add_options()(kOperand, po::value<std::vector<std::string>>());
  po::positional_options_description positional;
  positional.add(kOperand, -1);
  // No abbreviations: what works today must not change meaning when an option is added.
  const int style = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
  Invocation invocation;
  try {
    po::store(po::command_line_parser(arguments).options(all).positional(positional).style(style).run(),
              invocation.options);
  } catch (const po::unknown_option& error) {
    refuse_option(command, error.get_option_name());
  } catch (const po::error& error) {
    throw UserError(Diagnostic{.path = "stepcast " + command.name, .problem = error.what(),
                               .expected = usage_line(command)});
  }
  invocation.operands = invocation.list(kOperand);
  check_operands(command, invocation.operands);
  return invocation;
}

Status run_command_line(std::vector<std::string> arguments) {
  const std::vector<Command> commands = command_table();
  if (arguments.empty()) {
    std::fputs(help_text(commands).c_str(), stderr);
    return Status::kBadInput;
  }
  const std::string name = arguments.front();
  arguments.erase(arguments.begin());
  if (name == "--help" || name == "-h" || name == "help") {
    print(arguments.empty() ? help_text(commands) : help_text(find_command(commands, arguments.front())));
    return Status::kDone;
  }
  if (name == "--version") {
    print(fmt::format("stepcast {}\n", version()));
    return Status::kDone;
  }
  if (name.starts_with("-")) {
    throw UserError(Diagnostic{.problem = fmt::format("unknown option '{}'", name),
                               .expected = "a command first: stepcast COMMAND [OPTION...]",
                               .hint = "`stepcast --help` lists the commands"});
  }
  const Command& command = find_command(commands, name);
  const auto end_of_options = std::find(arguments.begin(), arguments.end(), "--");
  const auto asks = [](const std::string& word) { return word == "--help" || word == "-h"; };
  if (std::any_of(arguments.begin(), end_of_options, asks)) {
    print(help_text(command));
    return Status::kDone;
  }
  const Invocation invocation = parse_arguments(command, arguments);
  Session session{detect_terminal(), find_data_files(own_executable()), commands};
  expect_outputs(command, invocation);
  return command.run(invocation, session);
}

}  // namespace stepcast::app
