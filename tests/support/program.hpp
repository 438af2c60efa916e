// tests/support/program.hpp — runs the built `stepcast` as a user would: arguments in, status and
// both outputs back. And a directory that goes away with the test.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <doctest/doctest.h>

#include "tests/support/source_dir.hpp"

namespace stepcast::test {

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "stepcast-test-XXXXXX").string();
    REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline std::string text_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

struct Outcome {
  int status = -1;  // exit status; 128 + signal
  std::string out;
  std::string err;
};

// A line for `sh`, run in `folder` (default: the source tree).
inline Outcome run_shell(const std::string& line, const std::filesystem::path& folder = STEPCAST_SOURCE_DIR) {
  const TemporaryDirectory outputs;
  const std::string out = outputs.path() / "out";
  const std::string err = outputs.path() / "err";
  const std::string whole = "cd '" + folder.string() + "' && { " + line + "\n} >'" + out + "' 2>'" + err + "' </dev/null";
  const int raw = std::system(whole.c_str());
  Outcome outcome;
  outcome.status = WIFEXITED(raw) ? WEXITSTATUS(raw) : 128 + WTERMSIG(raw);
  outcome.out = text_of(out);
  outcome.err = text_of(err);
  return outcome;
}

#ifdef STEPCAST_PROGRAM
inline Outcome run_stepcast(const std::string& arguments, const std::filesystem::path& folder = STEPCAST_SOURCE_DIR) {
  return run_shell(std::string{STEPCAST_PROGRAM} + ' ' + arguments, folder);
}
#endif

}  // namespace stepcast::test
