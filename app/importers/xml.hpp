// app/importers/xml.hpp — small XML files as a tree with positions: elements and attributes, comments and a
// prolog passed over. What NCCL writes and reads; no text between tags, entities other than the five, or DTD.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/diagnostic.hpp"

namespace stepcast::app {

struct XmlAttribute {
  std::string name;
  std::string value;
};

struct XmlElement {
  std::string name;
  std::vector<XmlAttribute> attributes;
  std::vector<XmlElement> children;
  SourcePosition at;  // of its '<'

  [[nodiscard]] std::optional<std::string> find(std::string_view attribute) const;
};

// The one root element. Throws UserError at the place where it is no XML.
XmlElement parse_xml(std::string_view text, const std::string& file);

}  // namespace stepcast::app
