// app/cli/share_text.hpp — shares as people write them: "30%", "0.3".
#pragma once

#include <optional>
#include <string>

#include "sim/base/text.hpp"

namespace stepcast::app {

// [1]; empty for what is not a number.
inline std::optional<double> share_of(const std::string& text) {
  const bool percent = text.ends_with('%');
  const std::optional<double> number = parse_number(percent ? text.substr(0, text.size() - 1) : text);
  if (!number) return std::nullopt;
  return *number / (percent ? 100.0 : 1.0);
}

}  // namespace stepcast::app
