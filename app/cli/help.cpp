#include <algorithm>

#include <fmt/format.h>

#include "app/cli/command_line.hpp"
#include "app/cli/command_texts.hpp"
#include "app/cli/option_spelling.hpp"

namespace stepcast::app {
namespace {

constexpr std::size_t kWidth = 100;

std::string two_columns(const std::vector<std::pair<std::string, std::string>>& rows) {
  std::size_t left = 0;
  for (const auto& [name, text] : rows) left = std::max(left, name.size());
  std::string out;
  for (const auto& [name, text] : rows) {
    const std::string head = fmt::format("  {:<{}}  ", name, left);
    out += head + wrap(text, kWidth, std::string(head.size(), ' ')) + '\n';
  }
  return out;
}

}  // namespace

std::string usage_line(const Command& command) {
  std::string text = "stepcast " + command.name + " [OPTION...]";
  if (!command.operands.usage.empty()) text += ' ' + command.operands.usage;
  return text;
}

std::string help_text(std::span<const Command> commands) {
  std::vector<std::pair<std::string, std::string>> rows;
  for (const Command& command : commands) rows.emplace_back(command.name, command.summary);
  return fmt::format(
      "stepcast {}: forecasts a training step of a neural network on a GPU cluster.\n\n"
      "usage: stepcast COMMAND [OPTION...] [FILE...]\n"
      "       stepcast COMMAND --help\n"
      "       stepcast --version\n\n"
      "Commands:\n{}\n"
      "Exit status: 0 done; 1 the answer is no (does not fit, over tolerance); 2 bad input;\n"
      "3 internal or system error.\n",
      version(), two_columns(rows));
}

std::string help_text(const Command& command) {
  std::vector<std::pair<std::string, std::string>> rows;
  for (const auto& option : command.options.options()) {
    rows.emplace_back(spelling(*option), option->description());
  }
  rows.emplace_back("-h, --help", "this text");
  return fmt::format("usage: {}\n\n{}.\n\n{}\n\nOptions:\n{}", usage_line(command),
                     wrap(command.summary, kWidth, ""), wrap(command.details, kWidth, ""), two_columns(rows));
}

}  // namespace stepcast::app
