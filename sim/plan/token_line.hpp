// sim/plan/token_line.hpp — one line of a plan file cut into tokens, read from left to right with
// errors that point at the token. Not for other folders.
#pragma once

#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/diagnostic.hpp"
#include "sim/base/text.hpp"
#include "sim/plan/names.hpp"

namespace stepcast::plan {

class TokenLine {
 public:
  // Tokens are separated by spaces or tabs; a token that starts with a quote runs to the closing
  // one. Reuses its storage: one TokenLine reads a whole file. Throws UserError on an open quote.
  void assign(std::string_view line, const std::string& file, int number);

  [[nodiscard]] bool empty() const { return tokens_.empty(); }
  [[nodiscard]] bool at_end() const { return next_ == tokens_.size(); }
  [[nodiscard]] std::string_view peek() const { return at_end() ? std::string_view{} : tokens_[next_].text; }

  std::string_view word(const char* what);
  std::string quoted(const char* what);
  void finish();  // nothing may follow

  template <class Int>
  Int integer(const char* what, Int least, Int most) {
    const std::string_view text = word(what);
    Int value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc::invalid_argument || end != text.data() + text.size()) refuse_token(what, "a whole number");
    if (error != std::errc{} || value < least || value > most) {
      refuse_token(what, "a number from " + std::to_string(least) + " to " + std::to_string(most));
    }
    return value;
  }

  // An index into a table of `count` entries.
  template <class IdType>
  IdType id(const char* what, std::size_t count) {
    if (count == 0) {
      word(what);
      refuse_token(what, std::string{"a "} + what + " declared above; there is none");
    }
    return IdType{integer<std::size_t>(what, 0, count - 1)};
  }

  template <class Enum>
  Enum name(const char* what) {
    const std::string_view text = word(what);
    if (const auto value = from_name<Enum>(text)) return *value;
    const auto words = names<Enum>();
    refuse_word(what, {words.begin(), words.end()});
  }

  double number(const char* what);
  Bytes bytes(const char* what);
  std::optional<std::uint16_t> optional_index(const char* what);  // "-" is none

  // At the token read last.
  [[noreturn]] void refuse_token(const char* what, const std::string& expected) const;
  [[noreturn]] void refuse_word(const char* what, const std::vector<std::string>& words) const;
  [[noreturn]] void refuse(const std::string& problem, const std::string& expected = {}, const std::string& hint = {}) const;

 private:
  struct Token {
    std::string_view text;  // with its quotes
    std::size_t column;
  };
  [[nodiscard]] SourcePosition position() const;

  std::string file_;
  int number_ = 0;
  std::size_t length_ = 0;
  std::size_t next_ = 0;
  std::vector<Token> tokens_;
};

}  // namespace stepcast::plan
