#include <fmt/format.h>

#include "app/cli/command_texts.hpp"
#include "app/cli/option_spelling.hpp"
#include "sim/base/text.hpp"

namespace stepcast::app {
namespace {

struct CommandWords {
  std::string options;       // all options
  std::string with_value;    // options followed by a value that is no file, as a case pattern
};

CommandWords words_of(const Command& command) {
  CommandWords words{"--help", ""};
  for (const auto& option : command.options.options()) {
    const std::string name = "--" + option->long_name();
    words.options += ' ' + name;
    const std::string value = value_word(*option);
    if (value.empty() || value == "FILE") continue;
    words.with_value += (words.with_value.empty() ? "" : "|") + name;
  }
  return words;
}

}  // namespace

std::string bash_completion(std::span<const Command> commands) {
  std::string names;
  std::string cases;
  for (const Command& command : commands) {
    names += (names.empty() ? "" : " ") + command.name;
    const CommandWords words = words_of(command);
    cases += fmt::format("    {})\n      options=\"{}\"\n      operands=\"{}\"\n", command.name, words.options,
                         join(command.operands.words, " "));
    if (!words.with_value.empty()) {
      cases += fmt::format("      if [[ $previous =~ ^({})$ ]]; then return; fi\n", words.with_value);
    }
    cases += "      ;;\n";
  }
  return fmt::format(
      "# bash completion for stepcast; written by `stepcast completion bash`.\n"
      "_stepcast() {{\n"
      "  local current=${{COMP_WORDS[COMP_CWORD]}} options operands\n"
      "  local previous=${{COMP_WORDS[COMP_CWORD-1]}}\n"
      "  COMPREPLY=()\n"
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
      "    mapfile -t COMPREPLY < <(compgen -W \"{} --help --version\" -- \"$current\")\n"
      "    return\n"
      "  fi\n"
      "  case ${{COMP_WORDS[1]}} in\n{}    *) return ;;\n"
      "  esac\n"
      "  if [[ $current == -* ]]; then\n"
      "    mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$current\")\n"
      "  elif [ -n \"$operands\" ]; then\n"
      "    mapfile -t COMPREPLY < <(compgen -W \"$operands\" -- \"$current\")\n"
      "  else\n"
      "    compopt -o filenames 2>/dev/null\n"
      "    mapfile -t COMPREPLY < <(compgen -f -- \"$current\")\n"
      "  fi\n"
      "}}\n"
      "complete -F _stepcast stepcast ./stepcast\n",
      names, cases);
}

}  // namespace stepcast::app
