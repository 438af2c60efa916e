#include "app/cli/terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include <fmt/format.h>

namespace stepcast::app {
namespace {

bool environment_says(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0';
}

bool locale_is_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    const std::string_view text{value};
    return text.find("UTF-8") != text.npos || text.find("utf8") != text.npos;
  }
  return false;
}

// Characters, not bytes: continuation bytes of UTF-8 do not count.
std::size_t display_width(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

// "12.3", "-", "3.21 ms", "400 Gb/s d": a number, perhaps its unit, perhaps a mark.
bool looks_numeric(std::string_view cell) {
  if (cell == "-") return true;
  if (!cell.empty() && (cell[0] == '-' || cell[0] == '+')) cell.remove_prefix(1);
  return !cell.empty() && std::isdigit(static_cast<unsigned char>(cell[0])) != 0 &&
         std::count(cell.begin(), cell.end(), ' ') <= 2;
}

}  // namespace

Terminal detect_terminal() {
  Terminal terminal;
  terminal.interactive = ::isatty(STDOUT_FILENO) == 1;
  if (!terminal.interactive) return terminal;
  const char* kind = std::getenv("TERM");
  const bool dumb = kind == nullptr || std::string_view{kind} == "dumb";
  terminal.colour = !dumb && !environment_says("NO_COLOR");
  terminal.unicode = !dumb && locale_is_utf8();
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    terminal.width = std::clamp<int>(size.ws_col, 60, 160);
  }
  return terminal;
}

std::string paint(const Terminal& terminal, Tone tone, std::string_view text) {
  if (!terminal.colour || tone == Tone::kPlain) return std::string{text};
  const char* code = "0";
  switch (tone) {
    case Tone::kPlain: break;
    case Tone::kStrong: code = "1"; break;
    case Tone::kDim: code = "2"; break;
    case Tone::kGood: code = "32"; break;
    case Tone::kBad: code = "31"; break;
    case Tone::kWarning: code = "33"; break;
  }
  return fmt::format("\033[{}m{}\033[0m", code, text);
}

std::string bar(const Terminal& terminal, double share, std::size_t width) {
  const auto cells = static_cast<std::size_t>(
      std::lround(std::clamp(share, 0.0, 1.0) * static_cast<double>(width)));
  std::string text;
  for (std::size_t i = 0; i < cells; ++i) text += terminal.unicode ? "\u2588" : "#";
  return text;
}

std::string Table::render(const Terminal& terminal, std::string_view indent) const {
  std::vector<std::size_t> widths;
  std::vector<bool> right;
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    for (std::size_t c = 0; c < rows_[r].size(); ++c) {
      if (c >= widths.size()) {
        widths.push_back(0);
        right.push_back(true);
      }
      widths[c] = std::max(widths[c], display_width(rows_[r][c]));
      if (r > 0 && !rows_[r][c].empty() && !looks_numeric(rows_[r][c])) right[c] = false;
    }
  }
  std::string text;
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    std::string line{indent};
    for (std::size_t c = 0; c < rows_[r].size(); ++c) {
      const std::string padding(widths[c] - display_width(rows_[r][c]), ' ');
      if (c > 0) line += "  ";
      line += right[c] ? padding + rows_[r][c] : rows_[r][c] + padding;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += (r == 0 ? paint(terminal, Tone::kStrong, line) : line) + '\n';
  }
  return text;
}

std::string wrap(std::string_view text, std::size_t width, std::string_view indent) {
  std::string out;
  std::size_t column = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(" \n"), text.size());
    const std::string_view word = text.substr(0, end);
    if (!word.empty()) {
      const std::size_t length = display_width(word);
      if (column > indent.size() && column + 1 + length > width) {
        out += '\n';
        out += indent;
        column = indent.size();
      } else if (column > indent.size()) {
        out += ' ';
        ++column;
      }
      if (column == 0) column = indent.size();
      out += word;
      column += length;
    }
    if (end < text.size() && text[end] == '\n') {
      out += '\n';
      out += indent;
      column = indent.size();
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

Progress::Progress(bool quiet) : active_{!quiet && ::isatty(STDERR_FILENO) == 1} {}

Progress::~Progress() {
  if (shown_) std::fputs("\r\033[K", stderr);
}

void Progress::show(std::string_view what) {
  if (!active_) return;
  std::fputs(fmt::format("\r\033[K{}", what).c_str(), stderr);
  std::fflush(stderr);
  shown_ = true;
}

}  // namespace stepcast::app
