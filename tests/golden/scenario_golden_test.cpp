// Every configs/bad/*.yaml states its stage and the full text of its error:
//
//   # stage: scenario
//   # expect:
//   #   configs/bad/x.yaml:9:3: error: ...
//
// Stage `scenario`: the file alone is wrong, checked here. Stage `plan`: the catalogue or the model
// is needed to tell, checked end to end through the command. UPDATE_GOLDEN=1 rewrites what differs.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "sim/base/file.hpp"
#include "sim/base/text.hpp"
#include "sim/scenario/load.hpp"
#include "sim/scenario/write.hpp"
#include "tests/support/source_dir.hpp"

using namespace stepcast;
using namespace stepcast::scenario;
namespace fs = std::filesystem;

TEST_SUITE_BEGIN("golden");

namespace {

bool updating() { return std::getenv("UPDATE_GOLDEN") != nullptr; }

struct BadFile {
  std::string stage;
  std::string expected;
  std::string body;  // what follows the header
};

BadFile parse_bad(const std::string& text) {
  BadFile bad;
  const std::string stage = "# stage: ";
  std::size_t at = 0;
  bool expecting = false;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    if (line.starts_with(stage)) {
      bad.stage = line.substr(stage.size());
    } else if (line == "# expect:") {
      expecting = true;
    } else if (expecting && line.starts_with("#   ")) {
      bad.expected += (bad.expected.empty() ? "" : "\n") + line.substr(4);
    } else {
      break;
    }
    at = end + 1;
  }
  bad.body = at < text.size() ? text.substr(at) : "";
  return bad;
}

std::string render_bad(const BadFile& bad) {
  std::string text = "# stage: " + bad.stage + "\n# expect:\n";
  for (const std::string& line : split(bad.expected, '\n')) text += "#   " + line + "\n";
  return text + bad.body;
}

std::string error_of(const std::string& text, const std::string& path) {
  try {
    load_variants_text(text, path);
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("scenario: every wrong file gives exactly the error it states") {
  fs::current_path(STEPCAST_SOURCE_DIR);
  std::vector<std::string> paths;
  for (const auto& entry : fs::directory_iterator("configs/bad")) paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  int checked = 0;
  for (const std::string& path : paths) {
    CAPTURE(path);
    const BadFile bad = parse_bad(read_file(path));
    const bool known_stage = bad.stage == "scenario" || bad.stage == "plan";
    CHECK(known_stage);
    if (bad.stage == "plan") {
      // The scenario alone is fine.
      CHECK(error_of(read_file(path), path) == "no error");
      continue;
    }
    ++checked;
    if (updating()) {
      // Lines in the error move with the header's length: the second round is the final one.
      BadFile renewed = bad;
      for (int round = 0; round < 2; ++round) renewed.expected = error_of(render_bad(renewed), path);
      if (renewed.expected != bad.expected) write_file(path, render_bad(renewed));
      continue;
    }
    CHECK(error_of(read_file(path), path) == bad.expected);
  }
  CHECK(checked >= 45);
}

TEST_CASE("scenario: the reference page is the one that the key lists give") {
  const std::string path = STEPCAST_SOURCE_DIR "/docs/guide/scenario_reference.md";
  if (updating()) write_file(path, reference_page());
  CHECK(read_file(path) == reference_page());
}

TEST_SUITE_END();
