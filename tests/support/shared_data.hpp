// tests/support/shared_data.hpp — third parties' files live outside the repository, in ../shared
// beside the checkout or where STEPCAST_SHARED points; tests that need them skip when they are absent.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

#include "tests/support/source_dir.hpp"

namespace stepcast::test {

// The path of a file or folder of the shared data; empty, and said so, when it is not there.
inline std::optional<std::string> shared_path(const std::string& relative) {
  const char* root = std::getenv("STEPCAST_SHARED");
  const std::string path = (root != nullptr ? std::string{root} : STEPCAST_SOURCE_DIR "/../shared") + "/" + relative;
  if (std::filesystem::exists(path)) return path;
  std::printf("skipped: no shared data at %s\n", relative.c_str());
  return std::nullopt;
}

}  // namespace stepcast::test
