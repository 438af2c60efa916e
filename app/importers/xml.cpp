#include "app/importers/xml.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

namespace stepcast::app {
namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == ':' || c == '.';
}

class Parser {
 public:
  Parser(std::string_view text, const std::string& file) : text_{text}, file_{file} {}

  XmlElement run() {
    between();
    if (done()) refuse("no XML element in it", "a file that starts with <system version=\"1\">");
    XmlElement root = element(0);
    between();
    if (!done()) refuse("something after the end of the root element");
    return root;
  }

 private:
  static constexpr int kDeepest = 64;  // nested PCI bridges are a handful

  [[nodiscard]] bool done() const { return at_ >= text_.size(); }
  [[nodiscard]] bool sees(std::string_view word) const { return text_.substr(at_).starts_with(word); }
  [[nodiscard]] SourcePosition here() const { return {file_, line_, column_}; }

  [[noreturn]] void refuse(std::string problem, std::string expected = {}) const {
    throw UserError{Diagnostic{.where = here(), .path = {}, .problem = std::move(problem), .expected = std::move(expected), .got = {}, .hint = {}}};
  }

  void step(std::size_t count = 1) {
    for (; count > 0 && !done(); --count, ++at_) {
      if (text_[at_] == '\n') {
        ++line_;
        column_ = 1;
      } else {
        ++column_;
      }
    }
  }

  void spaces() {
    while (!done() && is_space(text_[at_])) step();
  }

  void pass(std::string_view end, const char* what) {
    const std::size_t found = text_.find(end, at_);
    if (found == std::string_view::npos) refuse(fmt::format("a {} that does not end", what), fmt::format("'{}'", end));
    step(found + end.size() - at_);
  }

  // White space, comments, the prolog.
  void between() {
    while (true) {
      spaces();
      if (sees("<!--")) {
        pass("-->", "comment");
      } else if (sees("<?")) {
        pass("?>", "prolog");
      } else if (sees("<!")) {
        refuse("a document type", "elements only");
      } else {
        return;
      }
    }
  }

  std::string name() {
    const std::size_t begin = at_;
    while (!done() && is_name(text_[at_])) step();
    if (at_ == begin) refuse("a name is missing");
    return std::string{text_.substr(begin, at_ - begin)};
  }

  std::string value() {
    if (done() || (text_[at_] != '"' && text_[at_] != '\'')) refuse("an attribute without a quoted value", "name=\"value\"");
    const char quote = text_[at_];
    const std::size_t close = text_.find(quote, at_ + 1);
    if (close == std::string_view::npos) refuse("a quoted value that does not end");
    std::string raw{text_.substr(at_ + 1, close - at_ - 1)};
    if (raw.find('<') != std::string::npos) refuse("a quoted value that does not end");
    step(close + 1 - at_);
    constexpr std::array<std::pair<std::string_view, char>, 5> kEntities{{{"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}, {"&amp;", '&'}}};
    std::string plain;
    for (std::size_t i = 0; i < raw.size();) {
      const auto entity = std::find_if(kEntities.begin(), kEntities.end(), [&](const auto& e) { return std::string_view{raw}.substr(i).starts_with(e.first); });
      plain += entity == kEntities.end() ? raw[i] : entity->second;
      i += entity == kEntities.end() ? 1 : entity->first.size();
    }
    return plain;
  }

  XmlElement element(int depth) {
    if (!sees("<")) refuse("text outside of tags", "an element <...>");
    if (depth > kDeepest) refuse("elements nested too deeply", fmt::format("at most {}", kDeepest));
    XmlElement out;
    out.at = here();
    step();
    out.name = name();
    while (true) {
      spaces();
      if (done()) refuse(fmt::format("the file ends inside <{}> of line {}", out.name, out.at.line));
      if (sees("/>")) {
        step(2);
        return out;
      }
      if (sees(">")) {
        step();
        break;
      }
      XmlAttribute attribute{name(), {}};
      spaces();
      if (!sees("=")) refuse(fmt::format("attribute {} without a value", attribute.name), "name=\"value\"");
      step();
      spaces();
      attribute.value = value();
      if (out.find(attribute.name)) refuse(fmt::format("a second attribute {}", attribute.name));
      out.attributes.push_back(std::move(attribute));
    }
    while (true) {
      between();
      if (done()) refuse(fmt::format("the file ends inside <{}> of line {}", out.name, out.at.line), fmt::format("</{}>: was the file cut?", out.name));
      if (!sees("</")) {
        out.children.push_back(element(depth + 1));
        continue;
      }
      const SourcePosition close = here();
      step(2);
      const std::string closing = name();
      spaces();
      if (closing != out.name || !sees(">")) {
        throw UserError{Diagnostic{.where = close, .path = {}, .problem = fmt::format("</{}> closes no open element", closing),
                                   .expected = fmt::format("</{}> (opened at line {})", out.name, out.at.line), .got = {}, .hint = {}}};
      }
      step();
      return out;
    }
  }

  std::string_view text_;
  const std::string& file_;
  std::size_t at_ = 0;
  int line_ = 1;
  int column_ = 1;
};

}  // namespace

std::optional<std::string> XmlElement::find(std::string_view attribute) const {
  for (const XmlAttribute& a : attributes)
    if (a.name == attribute) return a.value;
  return std::nullopt;
}

XmlElement parse_xml(std::string_view text, const std::string& file) { return Parser{text, file}.run(); }

}  // namespace stepcast::app
