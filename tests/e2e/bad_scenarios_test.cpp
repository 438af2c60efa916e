// Every file of configs/bad states the error that it must give, in comment lines after "# expect:".
#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "tests/support/program.hpp"
#include "tests/support/source_dir.hpp"

using stepcast::test::Outcome;
using stepcast::test::run_stepcast;

namespace {

std::string expected_error(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::string text;
  bool inside = false;
  for (std::string line; std::getline(in, line) && line.starts_with("#");) {
    if (inside) text += (line.size() > 4 ? line.substr(4) : "") + '\n';
    inside = inside || line.starts_with("# expect:");
  }
  return text;
}

}  // namespace

TEST_SUITE_BEGIN("e2e");

TEST_CASE("bad scenarios: the command gives the stated error and exits 2") {
  const std::filesystem::path folder = std::filesystem::path{STEPCAST_SOURCE_DIR} / "configs" / "bad";
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".yaml") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  CHECK(files.size() >= 40);
  for (const auto& file : files) {
    CAPTURE(file.filename().string());
    const Outcome outcome = run_stepcast("simulate configs/bad/" + file.filename().string());
    CHECK(outcome.status == 2);
    CHECK(outcome.out.empty());
    CHECK(outcome.err == expected_error(file));
  }
}

TEST_SUITE_END();
