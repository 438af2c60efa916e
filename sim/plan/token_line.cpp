#include "sim/plan/token_line.hpp"

#include "sim/plan/check.hpp"

namespace stepcast::plan {
namespace {

std::string shown(std::string_view text) {
  std::string result;
  for (const char c : text.substr(0, 60)) {
    const auto byte = static_cast<unsigned char>(c);
    result += byte < 0x20 || byte >= 0x7f ? '?' : c;
  }
  return text.size() > 60 ? result + "..." : result;
}

std::optional<int> hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return std::nullopt;
}

}  // namespace

void TokenLine::assign(std::string_view line, const std::string& file, int number) {
  if (file_ != file) file_ = file;
  number_ = number;
  length_ = line.size();
  next_ = 0;
  tokens_.clear();
  std::size_t i = 0;
  while (true) {
    while (i < line.size() && (line[i] == ' ' || line[i] == '\t' || line[i] == '\r')) ++i;
    if (i == line.size() || (tokens_.empty() && line[i] == '#')) return;
    const std::size_t begin = i;
    if (line[i] == '"') {
      for (++i; i < line.size() && line[i] != '"'; ++i) {
        if (line[i] == '\\') ++i;
      }
      if (i >= line.size()) {
        tokens_.push_back({line.substr(begin), begin});
        next_ = tokens_.size();
        refuse("the text has no closing quote", "text in double quotes on one line");
      }
      ++i;
    } else {
      while (i < line.size() && line[i] != ' ' && line[i] != '\t' && line[i] != '\r') ++i;
    }
    tokens_.push_back({line.substr(begin, i - begin), begin});
  }
}

SourcePosition TokenLine::position() const {
  const std::size_t column = next_ > 0 && next_ <= tokens_.size() ? tokens_[next_ - 1].column : length_;
  return {file_, number_, static_cast<int>(column) + 1};
}

void TokenLine::refuse(const std::string& problem, const std::string& expected, const std::string& hint) const {
  throw UserError(Diagnostic{.where = position(), .problem = problem, .expected = expected, .hint = hint});
}

void TokenLine::refuse_token(const char* what, const std::string& expected) const {
  throw UserError(Diagnostic{.where = position(),
                             .problem = std::string{"wrong "} + what,
                             .expected = expected,
                             .got = next_ > 0 && next_ <= tokens_.size() ? shown(tokens_[next_ - 1].text) : "nothing"});
}

void TokenLine::refuse_word(const char* what, const std::vector<std::string>& words) const {
  const std::string got = shown(tokens_[next_ - 1].text);
  const auto near = nearest_word(got, words);
  throw UserError(Diagnostic{.where = position(),
                             .problem = std::string{"unknown "} + what,
                             .expected = one_of(words),
                             .got = got,
                             .hint = near ? "did you mean '" + *near + "'?" : ""});
}

std::string_view TokenLine::word(const char* what) {
  if (at_end()) {
    throw UserError(Diagnostic{.where = {file_, number_, static_cast<int>(length_) + 1},
                               .problem = std::string{"the line ends where "} + what + " is expected"});
  }
  return tokens_[next_++].text;
}

std::string TokenLine::quoted(const char* what) {
  const std::string_view text = word(what);
  if (text.size() < 2 || text.front() != '"') refuse_token(what, "text in double quotes");
  std::string result;
  for (std::size_t i = 1; i + 1 < text.size(); ++i) {
    if (text[i] != '\\') {
      result += text[i];
      continue;
    }
    ++i;
    if (text[i] == '"' || text[i] == '\\') {
      result += text[i];
      continue;
    }
    const bool escape = text[i] == 'x' && i + 3 < text.size();
    const auto high = escape ? hex_digit(text[i + 1]) : std::nullopt;
    const auto low = escape ? hex_digit(text[i + 2]) : std::nullopt;
    if (!high || !low) refuse_token(what, "the escapes \\\" \\\\ and \\x with two lower-case hexadecimal digits");
    result += static_cast<char>(*high * 16 + *low);
    i += 2;
  }
  return result;
}

void TokenLine::finish() {
  if (at_end()) return;
  ++next_;
  refuse_token("ending", "the end of the line");
}

double TokenLine::number(const char* what) {
  const std::string_view text = word(what);
  double value = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value)) {
    refuse_token(what, "a finite decimal number");
  }
  return value;
}

Bytes TokenLine::bytes(const char* what) {
  return Bytes{integer<std::int64_t>(what, 0, kLargestSize.count())};
}

std::optional<std::uint16_t> TokenLine::optional_index(const char* what) {
  if (peek() == "-") {
    ++next_;
    return std::nullopt;
  }
  return integer<std::uint16_t>(what, 0, std::numeric_limits<std::uint16_t>::max());
}

}  // namespace stepcast::plan
