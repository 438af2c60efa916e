// tests/support/golden.hpp — compares text with a file of the repository. With STEPCAST_UPDATE_GOLDEN=1
// in the environment the file is rewritten instead: look at the difference before committing it.
#pragma once

#include <cstdlib>
#include <string>

#include <doctest/doctest.h>

#include "sim/base/file.hpp"
#include "tests/support/source_dir.hpp"

namespace stepcast::test {

inline std::string golden_path(const std::string& name) { return std::string{STEPCAST_SOURCE_DIR} + "/tests/golden/" + name; }

inline void check_golden(const std::string& name, const std::string& text) {
  const std::string path = golden_path(name);
  if (const char* update = std::getenv("STEPCAST_UPDATE_GOLDEN"); update != nullptr && std::string{update} == "1") {
    write_file(path, text);
    MESSAGE("rewrote " << path);
    return;
  }
  INFO(path);
  CHECK(text == read_file(path));
}

}  // namespace stepcast::test
