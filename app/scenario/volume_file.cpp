#include "app/scenario/volume_file.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "sim/base/diagnostic.hpp"
#include "sim/base/plain_text.hpp"
#include "sim/base/text.hpp"

namespace stepcast::app {
namespace {

constexpr std::string_view kBetween = ", \t\r";

struct NumberLine {
  int number = 0;
  std::vector<double> values;
};

NumberLine read_line(std::string_view text, const std::string& path, int number) {
  NumberLine line{.number = number, .values = {}};
  for (std::size_t at = text.find_first_not_of(kBetween); at != std::string_view::npos; at = text.find_first_not_of(kBetween, at)) {
    const std::size_t end = std::min(text.find_first_of(kBetween, at), text.size());
    const std::string word{text.substr(at, end - at)};
    const auto value = parse_number(word);
    if (!value || *value < 0.0) {
      throw UserError(Diagnostic{.where = {path, number, static_cast<int>(at) + 1}, .problem = "not a volume", .expected = "a number of 0 or more", .got = word});
    }
    line.values.push_back(*value);
    at = end;
  }
  return line;
}

std::vector<NumberLine> read_lines(const std::string& path) {
  const std::string text = read_text_file(path, "lines of numbers");
  std::vector<NumberLine> lines;
  int number = 0;
  for (const std::string& raw : split(text, '\n')) {
    ++number;
    if (raw.find_first_not_of(kBetween) == std::string::npos || raw.front() == '#') continue;
    lines.push_back(read_line(raw, path, number));
  }
  return lines;
}

}  // namespace

plan::VolumeTable read_volumes(const std::string& path, std::size_t ranks) {
  const std::vector<NumberLine> lines = read_lines(path);
  const std::string expected = fmt::format("one line of {0} numbers, {0} lines of one, or {0} lines of {0} (ranks)", ranks);
  if (lines.empty()) throw UserError(Diagnostic{.where = {path, 1, 1}, .problem = "no volumes", .expected = expected});
  const std::size_t width = lines.front().values.size();
  plan::VolumeTable table{.name = path, .form = plan::VolumeForm::kPairs, .values = {}};
  double sum = 0.0;
  for (const NumberLine& line : lines) {
    if (line.values.size() != width) {
      throw UserError(Diagnostic{.where = {path, line.number, 1}, .problem = "a line of another length", .expected = fmt::format("{} numbers", width), .got = std::to_string(line.values.size())});
    }
    for (const double value : line.values) sum += value;
    table.values.insert(table.values.end(), line.values.begin(), line.values.end());
  }
  if (lines.size() == 1 && width == ranks) {
    table.form = plan::VolumeForm::kReceivers;
  } else if (width == 1 && lines.size() == ranks) {
    table.form = plan::VolumeForm::kSenders;
  } else if (width != ranks || lines.size() != ranks) {
    throw UserError(Diagnostic{.where = {path, lines.front().number, 1}, .problem = "volumes that do not fit the ranks", .expected = expected, .got = fmt::format("{} lines of {}", lines.size(), width)});
  }
  if (sum <= 0.0) throw UserError(Diagnostic{.where = {path, lines.front().number, 1}, .problem = "nothing is sent", .expected = "a number above 0"});
  return table;
}

}  // namespace stepcast::app
