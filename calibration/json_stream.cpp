#include "calibration/json_stream.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "sim/base/diagnostic.hpp"
#include "sim/base/plain_text.hpp"

namespace stepcast::calibration {
namespace {

constexpr std::size_t kBuffer = std::size_t{256} << 10U;
constexpr std::size_t kLongestString = std::size_t{16} << 20U;  // asked for; a wrong file ends here, not in all of the memory

bool is_blank(int c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }
bool is_bare(int c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '+' || c == '-' || c == '.' || c == '_'; }

void append_utf8(std::string& text, std::uint32_t point) {
  const auto add = [&](std::uint32_t byte) { text += static_cast<char>(byte); };
  if (point < 0x80) {
    add(point);
  } else if (point < 0x800) {
    add(0xc0 | point >> 6U);
    add(0x80 | (point & 0x3fU));
  } else if (point < 0x10000) {
    add(0xe0 | point >> 12U);
    add(0x80 | (point >> 6U & 0x3fU));
    add(0x80 | (point & 0x3fU));
  } else {
    add(0xf0 | point >> 18U);
    add(0x80 | (point >> 12U & 0x3fU));
    add(0x80 | (point >> 6U & 0x3fU));
    add(0x80 | (point & 0x3fU));
  }
}

}  // namespace

std::string printable(std::string_view text) {
  std::string clean;
  clean.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = utf8_length(text, i);
    const auto c = static_cast<unsigned char>(text[i]);
    if (length == 0) {
      clean += '?';
    } else if (is_blank(c)) {
      clean += ' ';
    } else if (c < 0x20 || c == 0x7f) {
      clean += '?';
    } else {
      clean += text.substr(i, length);
    }
    i += length == 0 ? 1 : length;
  }
  return clean;
}

std::optional<std::int64_t> scaled_integer(std::string_view text, int decimals) {
  constexpr std::int64_t kMost = (std::numeric_limits<std::int64_t>::max() - 10) / 10;  // room for a digit and for rounding
  std::size_t i = 0;
  const bool negative = !text.empty() && text[0] == '-';
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) ++i;
  std::int64_t value = 0;
  bool point = false;
  bool any = false;
  bool up = false;
  int left = decimals;
  for (; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '.' && !point) {
      point = true;
      continue;
    }
    if (c == 'e' || c == 'E') {  // rare: as a double
      double parsed = 0.0;
      const char* begin = text.data() + (text[0] == '+' ? 1 : 0);
      const auto [end, error] = std::from_chars(begin, text.data() + text.size(), parsed);
      const double scaled = std::round(parsed * std::pow(10.0, decimals));
      if (error != std::errc{} || end != text.data() + text.size() || !(std::abs(scaled) < 9e18)) return std::nullopt;
      return static_cast<std::int64_t>(scaled);
    }
    if (c < '0' || c > '9') return std::nullopt;
    any = true;
    if (point && left == 0) {
      up = c >= '5';
      left = -1;
      continue;
    }
    if (point && left < 0) continue;
    if (value > kMost) return std::nullopt;
    value = value * 10 + (c - '0');
    if (point) --left;
  }
  if (!any) return std::nullopt;
  for (; left > 0; --left) {
    if (value > kMost) return std::nullopt;
    value *= 10;
  }
  if (up) ++value;
  return negative ? -value : value;
}

JsonStream::JsonStream(ByteStream& bytes) : bytes_{bytes}, buffer_(kBuffer) {
  static constexpr std::string_view kMark = "\xef\xbb\xbf";  // UTF-8's byte order mark
  if (refill() && std::string_view{buffer_.data(), end_}.starts_with(kMark)) at_ = kMark.size();
}

void JsonStream::refuse(const std::string& problem) const {
  throw UserError(Diagnostic{.where = {bytes_.path(), 0, 0}, .problem = fmt::format("is no JSON at byte {}: {}", position(), problem)});
}

bool JsonStream::refill() {
  before_ += static_cast<std::int64_t>(end_);
  at_ = 0;
  end_ = bytes_.read(buffer_);
  return end_ > 0;
}

int JsonStream::look() {
  if (at_ == end_ && !refill()) return -1;
  return static_cast<unsigned char>(buffer_[at_]);
}

int JsonStream::look_past_blanks() {
  int c = look();
  while (is_blank(c)) {
    ++at_;
    c = look();
  }
  return c;
}

void JsonStream::expect(char wanted) {
  const int c = look_past_blanks();
  if (c < 0) throw JsonCut{position()};
  if (c != wanted) refuse(fmt::format("'{}' expected", wanted));
  ++at_;
}

bool JsonStream::accept(char wanted) {
  const int c = look_past_blanks();
  if (c < 0) throw JsonCut{position()};
  if (c != wanted) return false;
  ++at_;
  return true;
}

JsonStream::Kind JsonStream::peek() {
  const int c = look_past_blanks();
  if (c < 0) return Kind::kEnd;
  if (c == '{') return Kind::kObject;
  if (c == '[') return Kind::kArray;
  if (c == '"') return Kind::kString;
  if (c == '-' || (c >= '0' && c <= '9')) return Kind::kNumber;
  if (!is_bare(c)) refuse("a value expected");
  return Kind::kWord;
}

void JsonStream::require_string() {
  const int c = look_past_blanks();
  if (c < 0) throw JsonCut{position()};
  if (c != '"') refuse("a name in quotes expected");
}

// Requires: the next character is the opening quote.
std::string_view JsonStream::raw_string() {
  ++at_;
  scratch_.clear();
  for (;;) {
    const std::size_t begin = at_;
    while (at_ < end_ && buffer_[at_] != '"' && buffer_[at_] != '\\') ++at_;
    const std::string_view piece{buffer_.data() + begin, at_ - begin};
    if (at_ < end_ && buffer_[at_] == '"') {
      ++at_;
      if (scratch_.empty()) return piece;
      scratch_ += piece;
      return scratch_;
    }
    scratch_ += piece;
    if (scratch_.size() > kLongestString) refuse("a string of more than 16 MiB");
    if (at_ == end_) {
      if (!refill()) throw JsonCut{position()};
      continue;
    }
    ++at_;
    append_escape();
  }
}

std::uint32_t JsonStream::hex4() {
  std::uint32_t value = 0;
  for (int i = 0; i < 4; ++i) {
    const int c = look();
    if (c < 0) throw JsonCut{position()};
    const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
    if (digit < 0) refuse("four hexadecimal digits expected after \\u");
    value = value * 16 + static_cast<std::uint32_t>(digit);
    ++at_;
  }
  return value;
}

void JsonStream::append_escape() {
  const int c = look();
  if (c < 0) throw JsonCut{position()};
  ++at_;
  switch (c) {
    case 'n': scratch_ += '\n'; return;
    case 't': scratch_ += '\t'; return;
    case 'r': scratch_ += '\r'; return;
    case 'b': scratch_ += '\b'; return;
    case 'f': scratch_ += '\f'; return;
    case 'u': break;
    default: scratch_ += static_cast<char>(c); return;  // \" \\ \/, and paths of Windows that nobody escaped
  }
  std::uint32_t point = hex4();
  if (point >= 0xd800 && point < 0xdc00 && look() == '\\') {
    ++at_;
    if (look() == 'u') {
      ++at_;
      const std::uint32_t low = hex4();
      point = low >= 0xdc00 && low < 0xe000 ? 0x10000 + ((point - 0xd800) << 10U) + (low - 0xdc00) : std::uint32_t{'?'};
    } else {
      scratch_ += '?';
      append_escape();
      return;
    }
  }
  append_utf8(scratch_, point >= 0xd800 && point < 0xe000 ? std::uint32_t{'?'} : point);
}

std::string_view JsonStream::bare() {
  scratch_.clear();
  for (;;) {
    const std::size_t begin = at_;
    while (at_ < end_ && is_bare(static_cast<unsigned char>(buffer_[at_]))) ++at_;
    const std::string_view piece{buffer_.data() + begin, at_ - begin};
    if (at_ < end_ && scratch_.empty()) return piece;
    scratch_ += piece;
    if (scratch_.size() > 400) refuse("a number of more than 400 characters");
    if (at_ < end_ || !refill()) return scratch_;
  }
}

JsonStream::Scalar JsonStream::scalar() {
  const Kind kind = peek();
  switch (kind) {
    case Kind::kEnd: throw JsonCut{position()};
    case Kind::kString: return {kind, raw_string()};
    case Kind::kNumber:
    case Kind::kWord: return {kind, bare()};
    case Kind::kObject:
    case Kind::kArray: break;
  }
  skip();
  return {kind, {}};
}

void JsonStream::skip_string() {
  ++at_;
  for (;;) {
    while (at_ < end_ && buffer_[at_] != '"' && buffer_[at_] != '\\') ++at_;
    if (at_ == end_) {
      if (!refill()) throw JsonCut{position()};
      continue;
    }
    if (buffer_[at_++] == '"') return;
    if (look() < 0) throw JsonCut{position()};
    ++at_;
  }
}

// Brackets are counted, not matched by kind: what is skipped is not judged.
void JsonStream::skip() {
  const Kind kind = peek();
  if (kind == Kind::kEnd) throw JsonCut{position()};
  if (kind == Kind::kString) return skip_string();
  if (kind == Kind::kNumber || kind == Kind::kWord) {
    bare();
    return;
  }
  std::int64_t depth = 0;
  do {
    const int c = look();
    if (c < 0) throw JsonCut{position()};
    if (c == '"') {
      skip_string();
      continue;
    }
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    ++at_;
  } while (depth > 0);
}

}  // namespace stepcast::calibration
