// sim/base/plain_text.hpp — what a person can read: of a file before it is taken for text, and of what errors quote from it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace stepcast {

// Why bytes are no text, and what would make them one.
struct NoText {
  std::string problem;  // "is compressed with gzip"
  std::string hint;     // "gunzip it first"; may be empty
};

// Bytes of the UTF-8 character that begins at `at`, 0 for none: overlong forms, surrogates, cut ends. Requires: at < text.size().
std::size_t utf8_length(std::string_view text, std::size_t at);

// By the first bytes: UTF-16, compressed, an archive, SQLite, a program; else nothing.
std::optional<NoText> other_form(std::string_view bytes);

// Throws UserError for another form and for bytes that hold a zero, which no text does.
void expect_text(std::string_view bytes, const std::string& file, const std::string& expected);

// read_file() of what is to be text.
std::string read_text_file(const std::string& path, const std::string& expected);

// `text` as UTF-8 without control characters but line ends, '?' in place of the others; of more than `most` bytes, the first and "...".
std::string quotable(std::string_view text, std::size_t most);

}  // namespace stepcast
