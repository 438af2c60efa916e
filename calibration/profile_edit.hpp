// calibration/profile_edit.hpp — new figures in the text of a profile that a person wrote: their lines are replaced, everything else,
// comments and order included, stays as it is.
// Valid    sections at the margin, figures indented by two and each on one line, as in calibration/profiles
// Ignores  figures that go on over several lines, lists of figures
// Tests    unit/profile_edit_test
#pragma once

#include <string>
#include <vector>

namespace stepcast::calibration {

// `keys`: "section.figure". The line of each is taken from `from`, a profile as print_effective writes it; one that `text` lacks goes
// to the end of its section, and one that `from` lacks leaves `text`. Throws UserError where `text` has no such section.
std::string with_figure_lines(const std::string& text, const std::string& from, const std::vector<std::string>& keys);

// A whole section, "name:" and the lines under it, in place of the one of that name, else at the end.
std::string with_section(const std::string& text, const std::string& section);

// The section of that name in a profile as print_effective writes it, for with_section; empty where it has none.
std::string section_of(const std::string& text, const std::string& name);

// Lines "key: ..." at the margin, as a network's profile has them, in place of those of their keys, else at the end. A figure that is
// merely assumed does not replace one that somebody published.
std::string with_margin_lines(const std::string& text, const std::string& lines);

}  // namespace stepcast::calibration
