#include "sim/scenario/yaml.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <sstream>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include "sim/base/plain_text.hpp"
#include "sim/base/text.hpp"

namespace stepcast::scenario {
namespace {

SourcePosition position_of(const std::string& source, const YAML::Mark& mark, bool whole) {
  if (whole || mark.is_null()) return {source, 0, 0};
  return {source, mark.line + 1, mark.column + 1};
}

bool has_control_character(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x20 && c != '\n' && c != '\t'; });
}

// The text by line, for what the parser does not tell.
class SourceLines {
 public:
  explicit SourceLines(const std::string& text) : text_{text} {
    starts_.push_back(0);
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '\n') starts_.push_back(i + 1);
    }
  }

  // 0-based, as the parser counts. Empty past the end.
  [[nodiscard]] std::string_view line(int number) const {
    const auto index = static_cast<std::size_t>(number);
    if (number < 0 || index >= starts_.size()) return {};
    const std::string_view rest = std::string_view{text_}.substr(starts_[index]);
    return rest.substr(0, rest.find('\n'));
  }

  // The parser takes a text whose quote never closes as one that ends with the file.
  [[nodiscard]] bool closes_quote(const YAML::Mark& mark) const {
    const auto index = static_cast<std::size_t>(mark.line);
    if (mark.is_null() || index >= starts_.size()) return true;
    const std::size_t open = starts_[index] + static_cast<std::size_t>(mark.column);
    if (open >= text_.size() || (text_[open] != '"' && text_[open] != '\'')) return true;
    const char quote = text_[open];
    for (std::size_t i = open + 1; i < text_.size(); ++i) {
      if (quote == '"' && text_[i] == '\\') {
        ++i;
      } else if (text_[i] == quote) {
        return true;
      }
    }
    return false;
  }

 private:
  const std::string& text_;
  std::vector<std::size_t> starts_;
};

// Files of settings are written by people. What is larger is another file, and would take minutes to judge.
constexpr std::size_t kMostText = std::size_t{1} << 20U;
constexpr std::size_t kMostKeys = 1000;

// Builds the tree from the parser's events. After an error it keeps going with the rest.
class TreeBuilder final : public YAML::EventHandler {
 public:
  TreeBuilder(const SourceLines& lines, const std::string& source, bool whole, Diagnostics& diagnostics)
      : lines_{lines}, source_{source}, whole_{whole}, diagnostics_{diagnostics} {}

  [[nodiscard]] Node take_root() { return std::move(root_); }
  // The rest of the text was swallowed: nothing else in it can be judged.
  [[nodiscard]] bool broken() const { return broken_; }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    refuse_anchor(mark, anchor);
    Node node;
    node.at = at(mark);
    place(std::move(node), mark);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    refuse(mark, "references to other values (*name) are not supported", "write the value out here");
    Node node;
    node.at = at(mark);
    node.refused = true;
    place(std::move(node), mark);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    refuse_anchor(mark, anchor);
    refuse_tag(mark, tag);
    Node node;
    node.kind = NodeKind::kScalar;
    node.scalar = value;
    if (has_control_character(value)) {
      refuse(mark, "a control character in text", "remove it");
      node = refused_node();
    } else if (tag == "!" && !lines_.closes_quote(mark)) {
      refuse(mark, "a quoted text is never closed", "add the closing quote");
      broken_ = true;
      node = refused_node();
    }
    node.quoted = tag == "!" && !node.refused;
    node.at = at(mark);
    place(std::move(node), mark);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(NodeKind::kList, mark, tag, anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(NodeKind::kMapping, mark, tag, anchor);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Frame {
    Node node;
    std::string path;
    YAML::Mark mark;
    bool have_key = false;
    bool drop_value = false;  // its key was refused
    std::string key;
    SourcePosition key_at;
  };

  [[nodiscard]] SourcePosition at(const YAML::Mark& mark) const { return position_of(source_, mark, whole_); }

  // Path of the value that comes next.
  [[nodiscard]] std::string next_path() const {
    if (frames_.empty()) return {};
    const Frame& top = frames_.back();
    if (top.node.kind == NodeKind::kList) return child_path(top.path, top.node.items.size());
    return top.have_key ? child_path(top.path, top.key) : top.path;
  }

  static Node refused_node() {
    Node node;
    node.refused = true;
    return node;
  }
  void refuse(const YAML::Mark& mark, std::string problem, std::string hint = {}) {
    diagnostics_.add({.where = at(mark), .path = next_path(), .problem = std::move(problem), .hint = std::move(hint)});
  }
  void refuse_anchor(const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (anchor != YAML::NullAnchor) {
      refuse(mark, "named values (&name) are not supported", "write the value out where it is used");
    }
  }
  void refuse_tag(const YAML::Mark& mark, const std::string& tag) {
    if (!tag.empty() && tag != "?" && tag != "!") {
      constexpr std::string_view kCore = "tag:yaml.org,2002:";
      const std::string written = tag.starts_with(kCore) ? "!!" + tag.substr(kCore.size()) : tag;
      refuse(mark, "type tags (" + written + ") are not supported", "remove the tag; the key decides the type");
    }
  }

  void open(NodeKind kind, const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    refuse_anchor(mark, anchor);
    refuse_tag(mark, tag);
    Frame frame;
    frame.node.kind = kind;
    frame.node.at = at(mark);
    frame.path = next_path();
    frame.mark = mark;
    frames_.push_back(std::move(frame));
  }
  void close() {
    Frame done = std::move(frames_.back());
    frames_.pop_back();
    place(std::move(done.node), done.mark);
  }

  void place(Node node, const YAML::Mark& mark) {
    if (frames_.empty()) {
      root_ = std::move(node);
      return;
    }
    Frame& top = frames_.back();
    if (top.node.kind == NodeKind::kList) {
      top.node.items.push_back(std::move(node));
    } else if (top.have_key) {
      top.have_key = false;
      if (!top.drop_value) top.node.entries.push_back({top.key, top.key_at, std::move(node)});
    } else {
      take_key(top, node, mark);
    }
  }

  void take_key(Frame& top, const Node& node, const YAML::Mark& mark) {
    top.drop_value = false;
    if (node.kind != NodeKind::kScalar) {
      if (!node.refused) {
        refuse(mark, "a key must be a word", node.kind == NodeKind::kNothing ? "" : "put quotes around the value");
      }
      top.key = "?";
      top.drop_value = true;
    } else {
      top.key = node.scalar;
      top.key_at = node.at;
      if (node.scalar == "<<") {
        refuse(mark, "merging of mappings (<<) is not supported", "write the keys out here");
        top.drop_value = true;
      } else if (const Entry* first = top.node.find(node.scalar)) {
        diagnostics_.add({.where = node.at,
                          .path = child_path(top.path, node.scalar),
                          .problem = "duplicate key",
                          .expected = "each key once",
                          .hint = fmt::format("first given on line {}", first->key_at.line)});
        top.drop_value = true;
      }
    }
    if (top.node.entries.size() >= kMostKeys) {
      throw UserError(Diagnostic{.where = node.at, .path = top.path, .problem = "too many keys in one mapping",
                                 .expected = fmt::format("at most {}", kMostKeys)});
    }
    top.have_key = true;
  }

  const SourceLines& lines_;
  const std::string& source_;
  bool whole_;
  Diagnostics& diagnostics_;
  std::vector<Frame> frames_;
  Node root_;
  bool broken_ = false;
};

struct PlainWords {
  std::string_view vocabulary;  // how the parser's message starts
  const char* problem;
  const char* hint;
};

// The parser speaks of tokens and flows; people do not.
constexpr std::array<PlainWords, 16> kPlainWords{{
    {"end of map flow not found", "the bracket '{' is never closed", "add the missing '}' or ','"},
    {"end of sequence flow not found", "the bracket '[' is never closed", "add the missing ']' or ','"},
    {"end of map not found", "this line does not fit the lines above it", "check the indentation and that each 'key:' has its colon"},
    {"end of sequence not found", "this line does not fit the list above it", "check the indentation of the '-' signs"},
    {"illegal map value", "a second ':' in a value", "put quotes around text that contains ': '"},
    {"illegal map key", "a key is not allowed here", "check the indentation"},
    {"illegal block entry", "a list item ('-') is not allowed here", "start the list on a line of its own"},
    {"illegal flow end", "a closing bracket that nothing opened", "remove it, or add the opening one"},
    {"illegal tab", "tabs cannot indent", "use spaces"},
    {"illegal EOF in scalar", "a quoted text is never closed", "add the closing quote"},
    {"illegal document indicator", "a quoted text is never closed", "add the closing quote"},
    {"unknown token", "a character that cannot start a value", "put quotes around the text"},
    {"illegal character in scalar", "a character that is not allowed here", "put quotes around the text"},
    {"unknown escape character", "an unknown '\\' sequence in quotes", "write '\\\\' for a backslash, or use single quotes"},
    {"the referenced anchor is not defined", "references to other values (*name) are not supported", "write the value out here, or quote text that starts with '*'"},
    {"bad indentation", "the indentation does not fit", ""},
}};

Diagnostic syntax_error(const YAML::Exception& error, const SourceLines& lines, const std::string& source, bool whole) {
  if (!whole && !error.mark.is_null()) {
    // Two mistakes that the parser calls something else.
    const std::string_view line = lines.line(error.mark.line);
    const std::size_t indent = std::min(line.find_first_not_of(" \t"), line.size());
    if (const std::size_t tab = line.substr(0, indent).find('\t'); tab != std::string_view::npos) {
      return {.where = {source, error.mark.line + 1, static_cast<int>(tab) + 1},
              .problem = "tabs cannot indent",
              .hint = "use spaces"};
    }
    const std::string_view before = line.substr(0, static_cast<std::size_t>(error.mark.column));
    if (error.msg.starts_with("illegal map value") && before.find(':') == std::string_view::npos) {
      return {.where = {source, error.mark.line + 1, static_cast<int>(indent) + 1},
              .problem = "a key is not expected here",
              .hint = "check the indentation of this line and of the one above"};
    }
  }
  Diagnostic d{.where = position_of(source, error.mark, whole), .problem = "not readable as YAML: " + error.msg};
  for (const PlainWords& words : kPlainWords) {
    if (error.msg.starts_with(words.vocabulary)) {
      d.problem = words.problem;
      d.hint = words.hint;
    }
  }
  return d;
}

std::optional<Node> parse(const std::string& text, const std::string& source, bool whole, Diagnostics& diagnostics) {
  // yaml-cpp would read UTF-16 and control bytes as text; nothing we write contains them.
  if (const std::optional<NoText> other = other_form(text); other || text.find('\0') != std::string::npos) {
    diagnostics.add({.where = {source, 0, 0}, .problem = other ? other->problem : "not a text file", .expected = "YAML in UTF-8", .hint = other ? other->hint : ""});
    return std::nullopt;
  }
  if (text.size() > kMostText) {
    diagnostics.add({.where = {source, 0, 0}, .problem = "too large", .expected = fmt::format("at most {} bytes of YAML", kMostText)});
    return std::nullopt;
  }
  const SourceLines lines{text};
  try {
    std::istringstream in{text};
    YAML::Parser parser{in};
    TreeBuilder builder{lines, source, whole, diagnostics};
    if (!parser.HandleNextDocument(builder)) return Node{.at = {source, 0, 0}};
    if (builder.broken()) return std::nullopt;
    Node root = builder.take_root();
    Diagnostics ignored;
    TreeBuilder second{lines, source, whole, ignored};
    if (parser.HandleNextDocument(second)) {
      diagnostics.add({.where = second.take_root().at,
                       .problem = "a second document",
                       .expected = "one document in the file",
                       .hint = "remove the '---' line and what follows, or make it a file of its own"});
    }
    return root;
  } catch (const YAML::Exception& error) {
    diagnostics.add(syntax_error(error, lines, source, whole));
    return std::nullopt;
  }
}

}  // namespace

std::optional<Node> parse_yaml(const std::string& text, const std::string& source, Diagnostics& diagnostics) {
  return parse(text, source, false, diagnostics);
}

std::optional<Node> parse_yaml_value(const std::string& text, const std::string& source, Diagnostics& diagnostics) {
  return parse(text, source, true, diagnostics);
}

std::string yaml_scalar(const std::string& text, bool quoted) {
  constexpr std::string_view kUnsafeFirst = "!&*-?|>@`%#,[]{}\"'~:= \t";
  constexpr std::string_view kUnsafe = "#:{}[],&*!|>'\"%@`\\\n\r\t";
  const bool word = text == "null" || text == "Null" || text == "NULL" || text == "<<";
  bool must = quoted || text.empty() || word || kUnsafeFirst.find(text.front()) != std::string_view::npos ||
              text.find_first_of(kUnsafe) != std::string::npos || text.back() == ' ';
  if (parse_number(text)) must = quoted;  // -1 starts with an unsafe character, and is safe
  if (!must) return text;
  std::string out = "\"";
  for (const char c : text) {
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\r': out += "\\r"; break;
      case '\t': out += "\\t"; break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
        else out += c;
    }
  }
  return out + '"';
}

}  // namespace stepcast::scenario
