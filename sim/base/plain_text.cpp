#include "sim/base/plain_text.hpp"

#include <array>

#include "sim/base/diagnostic.hpp"
#include "sim/base/file.hpp"

namespace stepcast {
namespace {

using namespace std::string_view_literals;

struct Form {
  std::string_view begins;
  const char* problem;
  const char* hint;
};

constexpr std::array kForms{
    Form{"\xff\xfe"sv, "is UTF-16, as PowerShell writes it", "iconv -f UTF-16 -t UTF-8"},
    Form{"\xfe\xff"sv, "is UTF-16", "iconv -f UTF-16 -t UTF-8"},
    Form{"\x1f\x8b"sv, "is compressed", "gunzip it first"},
    Form{"\x28\xb5\x2f\xfd"sv, "is compressed", "unzstd it first"},
    Form{"\xfd" "7zXZ"sv, "is compressed", "unxz it first"},
    Form{"BZh"sv, "is compressed", "bunzip2 it first"},
    Form{"PK\x03\x04"sv, "is an archive or a workbook, not a text file", "unzip it, or save its sheet as CSV in UTF-8"},
    Form{"SQLite format 3\0"sv, "is a SQLite database, not a text file", ""},
    Form{"\x7f" "ELF"sv, "is a program, not a text file", ""},
};

}  // namespace

std::size_t utf8_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t k) { return static_cast<unsigned char>(text[at + k]); };
  const unsigned char first = byte(0);
  const std::size_t length = first < 0x80 ? 1 : first >= 0xc2 && first < 0xe0 ? 2 : first >= 0xe0 && first < 0xf0 ? 3 : first >= 0xf0 && first < 0xf5 ? 4 : 0;
  if (length == 0 || at + length > text.size()) return 0;
  for (std::size_t k = 1; k < length; ++k) {
    if ((byte(k) & 0xc0U) != 0x80U) return 0;
  }
  if ((first == 0xe0 && byte(1) < 0xa0) || (first == 0xed && byte(1) >= 0xa0)) return 0;
  if ((first == 0xf0 && byte(1) < 0x90) || (first == 0xf4 && byte(1) >= 0x90)) return 0;
  return length;
}

std::optional<NoText> other_form(std::string_view bytes) {
  for (const Form& form : kForms)
    if (bytes.starts_with(form.begins)) return NoText{form.problem, form.hint};
  return std::nullopt;
}

void expect_text(std::string_view bytes, const std::string& file, const std::string& expected) {
  std::optional<NoText> other = other_form(bytes);
  if (!other && bytes.find('\0') != std::string_view::npos) other = NoText{"is not a text file", ""};
  if (other) throw UserError(Diagnostic{.where = {file, 0, 0}, .problem = other->problem, .expected = expected, .hint = other->hint});
}

std::string read_text_file(const std::string& path, const std::string& expected) {
  std::string text = read_file(path);
  expect_text(text, path, expected);
  return text;
}

std::string quotable(std::string_view text, std::size_t most) {
  std::string clean;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = utf8_length(text, i);
    if (clean.size() + length > most) return clean + " ...";
    const auto c = static_cast<unsigned char>(text[i]);
    const bool second_controls = length == 2 && c == 0xc2 && static_cast<unsigned char>(text[i + 1]) < 0xa0;
    if (length == 0 || (c < 0x20 && c != '\n' && c != '\t') || c == 0x7f || second_controls) {
      clean += '?';
    } else {
      clean += text.substr(i, length);
    }
    i += length == 0 ? 1 : length;
  }
  return clean;
}

}  // namespace stepcast
