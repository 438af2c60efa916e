#include "calibration/profile_edit.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <sstream>

#include "sim/base/diagnostic.hpp"

namespace stepcast::calibration {
namespace {

using Lines = std::vector<std::string>;

Lines lines_of(const std::string& text) {
  Lines lines;
  std::istringstream in{text};
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::string text_of(const Lines& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + '\n';
  return text;
}

// Lines [begin, end) under a section's name; the blank ones and comments after its last figure belong to what follows.
struct Section {
  std::size_t begin = 0;
  std::size_t end = 0;
};

std::optional<Section> find_section(const Lines& lines, const std::string& name) {
  const auto head = std::find_if(lines.begin(), lines.end(), [&](const std::string& line) { return line.starts_with(name + ':'); });
  if (head == lines.end()) return {};
  Section section;
  section.begin = static_cast<std::size_t>(head - lines.begin()) + 1;
  section.end = section.begin;
  for (std::size_t i = section.begin; i < lines.size() && (lines[i].empty() || lines[i][0] == ' ' || lines[i][0] == '#'); ++i)
    if (!lines[i].empty() && lines[i][0] == ' ') section.end = i + 1;
  return section;
}

std::optional<std::size_t> find_figure(const Lines& lines, const Section& section, const std::string& name) {
  for (std::size_t i = section.begin; i < section.end; ++i)
    if (lines[i].starts_with("  " + name + ':')) return i;
  return {};
}

}  // namespace

std::string with_figure_lines(const std::string& text, const std::string& from, const std::vector<std::string>& keys) {
  Lines lines = lines_of(text);
  const Lines source = lines_of(from);
  for (const std::string& key : keys) {
    const std::string name = key.substr(0, key.find('.'));
    const std::string figure = key.substr(key.find('.') + 1);
    const auto there = find_section(source, name);
    const auto found = there ? find_figure(source, *there, figure) : std::nullopt;
    const auto section = find_section(lines, name);
    if (!section) throw UserError(Diagnostic{.path = name, .problem = "the profile has no such section", .expected = "a line '" + name + ":' at the margin"});
    const auto at = find_figure(lines, *section, figure);
    if (at && found) {
      lines[*at] = source[*found];
    } else if (at) {
      lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(*at));
    } else if (found) {
      lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(section->end), source[*found]);
    }
  }
  return text_of(lines);
}

std::string section_of(const std::string& text, const std::string& name) {
  const Lines lines = lines_of(text);
  const auto section = find_section(lines, name);
  if (!section) return {};
  return text_of({lines.begin() + static_cast<std::ptrdiff_t>(section->begin) - 1, lines.begin() + static_cast<std::ptrdiff_t>(section->end)});
}

std::string with_section(const std::string& text, const std::string& section) {
  Lines lines = lines_of(text);
  const Lines its = lines_of(section);
  const std::string name = its.empty() ? "" : its.front().substr(0, its.front().find(':'));
  std::ptrdiff_t at = static_cast<std::ptrdiff_t>(lines.size());
  if (const auto old = find_section(lines, name)) {
    at = static_cast<std::ptrdiff_t>(old->begin) - 1;
    lines.erase(lines.begin() + at, lines.begin() + static_cast<std::ptrdiff_t>(old->end));
  }
  lines.insert(lines.begin() + at, its.begin(), its.end());
  return text_of(lines);
}

std::string with_margin_lines(const std::string& text, const std::string& lines) {
  Lines result = lines_of(text);
  for (const std::string& line : lines_of(lines)) {
    if (line.empty() || line[0] == ' ' || line[0] == '#') continue;
    const std::string key = line.substr(0, line.find(':') + 1);
    const auto at = std::find_if(result.begin(), result.end(), [&](const std::string& old) { return old.starts_with(key); });
    if (at == result.end()) {
      result.push_back(line);
    } else if (line.find("basis: assumed") == std::string::npos || at->find("basis: published") == std::string::npos) {
      *at = line;
    }
  }
  return text_of(result);
}

}  // namespace stepcast::calibration
