// calibration/names.hpp — hardware names as people spell them: A100_SXM4-80GB and a100-sxm4-80gb are one.
#pragma once

#include <cctype>
#include <string>
#include <string_view>

namespace stepcast::calibration {

// Lower case; underscores and spaces become dashes.
inline std::string plain_name(std::string_view name) {
  std::string plain;
  for (const char c : name)
    plain += (c == '_' || c == ' ') ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return plain;
}

}  // namespace stepcast::calibration
