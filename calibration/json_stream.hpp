// calibration/json_stream.hpp — a JSON document read from front to back without holding it: the caller asks for what it knows
// and skips the rest, so that memory does not grow with the file.
//
// Form     RFC 8259, and what profilers write beside it: NaN, Infinity, inf, raw control characters and bytes that are not UTF-8
//          inside strings, text after the document. Strings come back as UTF-8 with '?' for what is none.
// Errors   UserError with the byte's position where something is no JSON; JsonCut where the file ends within the document.
// Cost     O(bytes); memory: one buffer and the longest string that is asked for
// Tests    unit/json_stream_test
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calibration/byte_stream.hpp"

namespace stepcast::calibration {

struct JsonCut {
  std::int64_t position = 0;  // [B]
};

class JsonStream {
 public:
  explicit JsonStream(ByteStream& bytes);

  enum class Kind : std::uint8_t { kObject, kArray, kString, kNumber, kWord, kEnd };
  Kind peek();  // of the next value; kEnd: nothing but blanks follow

  // Calls `on(key)` for each member; it reads or skips the value. The key lives until then.
  template <class On>
  void object(On on) {
    expect('{');
    if (accept('}')) return;
    do {
      require_string();
      key_.assign(raw_string());
      expect(':');
      on(std::string_view{key_});
    } while (accept(','));
    expect('}');
  }
  // Calls `on()` for each element.
  template <class On>
  void array(On on) {
    expect('[');
    if (accept(']')) return;
    do {
      on();
    } while (accept(','));
    expect(']');
  }

  // A scalar's text: of a string what it says, of a number or word how it is written. Objects and arrays are skipped, their text is
  // empty. Lives until the next read.
  struct Scalar {
    Kind kind = Kind::kWord;
    std::string_view text;
  };
  Scalar scalar();
  void skip();

  [[nodiscard]] std::int64_t position() const { return before_ + static_cast<std::int64_t>(at_); }

 private:
  bool refill();
  int look();  // the next character, or -1
  int look_past_blanks();
  void expect(char wanted);
  bool accept(char wanted);
  void require_string();
  std::string_view raw_string();
  std::string_view bare();
  void skip_string();
  void append_escape();
  std::uint32_t hex4();
  [[noreturn]] void refuse(const std::string& problem) const;

  ByteStream& bytes_;
  std::vector<char> buffer_;
  std::size_t at_ = 0;
  std::size_t end_ = 0;
  std::int64_t before_ = 0;  // bytes before the buffer
  std::string scratch_;
  std::string key_;
};

// Valid UTF-8 without control characters: '?' in place of what is none, blanks for white space.
std::string printable(std::string_view text);

// Decimal text times 10^`decimals`, rounded to an integer; empty for what is no finite number or does not fit. Exact where there is no
// exponent.
std::optional<std::int64_t> scaled_integer(std::string_view text, int decimals);

}  // namespace stepcast::calibration
