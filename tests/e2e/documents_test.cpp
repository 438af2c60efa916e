// The documents' commands run as written. A block that starts with ```sh is a script for a copy of the
// checkout in which ./stepcast is the built program; "exit=2" after sh is its exit status. A ```text
// block right after it, introduced by a line "prints", is what it prints, but for the figures.
#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "tests/support/program.hpp"
#include "tests/support/source_dir.hpp"

using stepcast::test::Outcome;
using stepcast::test::run_shell;
using stepcast::test::TemporaryDirectory;
using stepcast::test::text_of;

namespace {

struct Block {
  std::string where;
  std::string script;
  int status = 0;
  std::string output;  // empty: not stated
};

std::vector<Block> blocks_of(const std::filesystem::path& file) {
  std::vector<Block> blocks;
  std::istringstream in(text_of(file));
  std::string fence;
  int number = 0;
  bool output_follows = false;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (!line.starts_with("```")) {
      if (fence == "sh") blocks.back().script += line + '\n';
      if (fence == "out") blocks.back().output += line + '\n';
      if (fence.empty() && !line.empty()) output_follows = line == "prints";
      continue;
    }
    if (!fence.empty()) {
      fence.clear();
    } else if (line.starts_with("```sh")) {
      fence = "sh";
      const std::size_t exit = line.find("exit=");
      blocks.push_back({file.filename().string() + ":" + std::to_string(number), "",
                        exit == std::string::npos ? 0 : std::stoi(line.substr(exit + 5)), ""});
    } else {
      fence = output_follows ? "out" : "other";
      output_follows = false;
    }
  }
  return blocks;
}

// Words, order and layout are compared; figures and bars move with every calibration, so that each run
// of digits (with its decimal point) or of bar cells, and blanks beside them, count as one mark.
std::string without_figures(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const bool figure = (c >= '0' && c <= '9') || c == '.' || c == '#' || c == ' ' || c == '\n';
    if (!figure) out += c;
    if (figure && (out.empty() || out.back() != '~')) out += '~';
  }
  return out;
}

std::vector<std::filesystem::path> documents() {
  const std::filesystem::path root = STEPCAST_SOURCE_DIR;
  std::vector<std::filesystem::path> files{root / "README.md"};
  for (const auto& entry : std::filesystem::directory_iterator(root / "docs" / "guide")) {
    if (entry.path().extension() == ".md") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

TEST_SUITE_BEGIN("e2e");

TEST_CASE("documents: every shell block runs, and prints what it says") {
  const std::filesystem::path root = STEPCAST_SOURCE_DIR;
  const TemporaryDirectory place;
  for (const char* name : {"configs", "topologies", "calibration"}) {
    std::filesystem::create_symlink(root / name, place.path() / name);
  }
  std::filesystem::create_symlink(STEPCAST_PROGRAM, place.path() / "stepcast");
  std::size_t run = 0;
  for (const auto& file : documents()) {
    for (const Block& block : blocks_of(file)) {
      CAPTURE(block.where);
      // These two install packages and build everything: .ci/run is their test.
      if (block.script.find("scripts/test.sh") != std::string::npos) continue;
      const Outcome outcome = run_shell("set -e\n" + block.script, place.path());
      CHECK_MESSAGE(outcome.status == block.status, outcome.err);
      if (!block.output.empty()) CHECK(without_figures(outcome.out) == without_figures(block.output));
      ++run;
    }
  }
  CHECK(run >= 6);
}

TEST_SUITE_END();
