#include "sim/trace/json_text.hpp"

#include <charconv>
#include <cmath>
#include <iterator>

#include "sim/base/check.hpp"

namespace stepcast::trace {
namespace {

// Length of the well-formed UTF-8 sequence at the front (RFC 3629, no surrogates or overlong forms); 0: none.
std::size_t sequence_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto between = [&](std::size_t i, unsigned low, unsigned high) {
    return i < text.size() && byte(i) >= low && byte(i) <= high;
  };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead <= 0xdf) return between(1, 0x80, 0xbf) ? 2 : 0;
  if (lead >= 0xe0 && lead <= 0xef) {
    const unsigned low = lead == 0xe0 ? 0xa0 : 0x80;
    const unsigned high = lead == 0xed ? 0x9f : 0xbf;
    return between(1, low, high) && between(2, 0x80, 0xbf) ? 3 : 0;
  }
  if (lead >= 0xf0 && lead <= 0xf4) {
    const unsigned low = lead == 0xf0 ? 0x90 : 0x80;
    const unsigned high = lead == 0xf4 ? 0x8f : 0xbf;
    return between(1, low, high) && between(2, 0x80, 0xbf) && between(3, 0x80, 0xbf) ? 4 : 0;
  }
  return 0;
}

}  // namespace

void append_json_string(std::string& out, std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  out += '"';
  while (!text.empty()) {
    const char c = text.front();
    const auto byte = static_cast<unsigned char>(c);
    std::size_t length = 1;
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20) {
      out += "\\u00";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    } else if (length = sequence_length(text); length > 0) {
      out.append(text.substr(0, length));
    } else {
      out += "\xef\xbf\xbd";
      length = 1;
    }
    text.remove_prefix(length);
  }
  out += '"';
}

void append_integer(std::string& out, std::int64_t value) {
  char buffer[24];
  out.append(buffer, std::to_chars(std::begin(buffer), std::end(buffer), value).ptr);
}

void append_number(std::string& out, double value) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  char buffer[40];
  const auto [end, error] = std::to_chars(std::begin(buffer), std::end(buffer), value);
  SIM_CHECK(error == std::errc{});
  out.append(buffer, end);
}

void append_microseconds(std::string& out, std::int64_t picoseconds) {
  constexpr std::uint64_t kPerMicrosecond = 1'000'000;
  auto magnitude = static_cast<std::uint64_t>(picoseconds);
  if (picoseconds < 0) {
    out += '-';
    magnitude = 0 - magnitude;
  }
  append_integer(out, static_cast<std::int64_t>(magnitude / kPerMicrosecond));
  char digits[7] = {'.', '0', '0', '0', '0', '0', '0'};
  std::uint64_t rest = magnitude % kPerMicrosecond;
  for (int i = 6; i > 0; --i, rest /= 10) digits[i] = static_cast<char>('0' + rest % 10);
  out.append(digits, sizeof digits);
}

}  // namespace stepcast::trace
