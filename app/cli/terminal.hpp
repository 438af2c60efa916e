// app/cli/terminal.hpp — how text may look on standard output: colour and box characters only on a
// terminal, so that files and pipes get plain ASCII that is the same everywhere.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace stepcast::app {

struct Terminal {
  bool interactive = false;  // standard output is a terminal
  bool colour = false;       // and neither NO_COLOR nor TERM=dumb says otherwise
  bool unicode = false;      // and the locale is UTF-8
  int width = 100;
};
Terminal detect_terminal();

enum class Tone { kPlain, kStrong, kDim, kGood, kBad, kWarning };
std::string paint(const Terminal& terminal, Tone tone, std::string_view text);

// A bar of at most `width` cells for a share in [0, 1].
std::string bar(const Terminal& terminal, double share, std::size_t width);

// Columns padded to their widest cell; the first row is the heading. Cells that are numbers (or
// numbers with a unit) align right. Lines end without trailing blanks.
class Table {
 public:
  explicit Table(std::vector<std::string> heading) : rows_{std::move(heading)} {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  [[nodiscard]] std::string render(const Terminal& terminal, std::string_view indent = "") const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

// Breaks at blanks so that no line is longer than `width`; continuation lines start with `indent`.
std::string wrap(std::string_view text, std::size_t width, std::string_view indent);

// Progress of long work, on standard error and only when that is a terminal; erased at the end.
class Progress {
 public:
  explicit Progress(bool quiet);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void show(std::string_view what);

 private:
  bool active_;
  bool shown_ = false;
};

}  // namespace stepcast::app
