// app/cli/option_spelling.hpp — how an option of Boost.Program_options is written for people.
#pragma once

#include <string>

#include <boost/program_options.hpp>

namespace stepcast::app {

// "FILE" for an option that takes one value, "" for a flag.
inline std::string value_word(const boost::program_options::option_description& option) {
  return option.semantic()->max_tokens() == 0 ? "" : option.semantic()->name();
}

// "-j" or "".
inline std::string short_name(const boost::program_options::option_description& option) {
  const std::string name =
      option.canonical_display_name(boost::program_options::command_line_style::allow_dash_for_short);
  return name.size() == 2 && name[0] == '-' ? name : "";
}

// "-j, --jobs N", "    --json FILE".
inline std::string spelling(const boost::program_options::option_description& option) {
  const std::string letter = short_name(option);
  const std::string value = value_word(option);
  return (letter.empty() ? "    " : letter + ", ") + "--" + option.long_name() +
         (value.empty() ? "" : ' ' + value);
}

}  // namespace stepcast::app
