#include <fmt/format.h>

#include "app/cli/command_line.hpp"
#include "app/cli/command_texts.hpp"
#include "app/cli/option_spelling.hpp"
#include "sim/base/text.hpp"

namespace stepcast::app {
namespace {

// Hyphens that are typed, backslashes, and lines that would start a request.
std::string roff(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n')) {
      out += "\\&";
      out += c;
    } else {
      out += c;
    }
  }
  return out;
}

std::string paragraphs(const std::string& text) {
  std::string out;
  for (const std::string& line : split(text, '\n')) out += line.empty() ? ".PP\n" : roff(line) + '\n';
  return out;
}

std::string one_command(const Command& command) {
  std::string out = fmt::format(".SS {}\n.B {}\n.PP\n{}.\n.PP\n{}", roff(command.name),
                                roff(usage_line(command)), roff(command.summary), paragraphs(command.details));
  for (const auto& option : command.options.options()) {
    out += fmt::format(".TP\n.B {}\n{}\n", roff(std::string{trim(spelling(*option))}), roff(option->description()));
  }
  return out;
}

}  // namespace

std::string man_page(std::span<const Command> commands) {
  std::string out = fmt::format(
      ".TH STEPCAST 1 \"\" \"stepcast {0}\" \"User commands\"\n"
      ".SH NAME\nstepcast \\- forecast a training step on a GPU cluster\n"
      ".SH SYNOPSIS\n.B stepcast\nCOMMAND [OPTION...] [FILE...]\n"
      ".SH DESCRIPTION\nStepcast simulates one training step of a neural network on a described cluster and\n"
      "prints its time, throughput, memory and where the time goes. A scenario is a YAML file;\n"
      "quantities carry units.\n.SH COMMANDS\n",
      version());
  for (const Command& command : commands) out += one_command(command);
  out +=
      ".SH EXIT STATUS\n.TP\n0\ndone\n.TP\n1\nthe answer is no (does not fit, over tolerance)\n"
      ".TP\n2\nbad input\n.TP\n3\ninternal or system error\n"
      ".SH ENVIRONMENT\n.TP\nNO_COLOR\nno colour on a terminal\n";
  return out;
}

}  // namespace stepcast::app
