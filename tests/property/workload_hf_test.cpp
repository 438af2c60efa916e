// Damaged config.json files: whatever is done to them, the reader answers with a usable shape or
// with a UserError that names the file.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "models/workload/hf_config.hpp"
#include "sim/base/diagnostic.hpp"
#include "sim/base/file.hpp"
#include "sim/base/random.hpp"
#include "tests/support/source_dir.hpp"

using namespace stepcast;
using namespace stepcast::workload;

TEST_SUITE_BEGIN("property");

namespace {

std::vector<std::string> samples() {
  std::vector<std::string> paths;
  for (const auto& entry :
       std::filesystem::directory_iterator{STEPCAST_SOURCE_DIR "/tests/golden/hf"})
    if (entry.path().extension() == ".json") paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> texts;
  for (const std::string& path : paths) texts.push_back(read_file(path));
  return texts;
}

std::string damaged(std::string text, Rng& rng) {
  constexpr const char* kPieces[] = {"0",    "-1",   "1e400", "NaN",   "null", "\"",
                                     "{",    "}",    "[",     "]",     ",",    ":",
                                     "\\u0", "true", "\n",    "99999", "0.5",  "\xff"};
  const auto edits = 1 + rng.below(3);
  for (std::uint64_t i = 0; i < edits; ++i) {
    const std::size_t at = rng.below(text.size() + 1);
    switch (rng.below(4)) {
      case 0:
        text.resize(at);
        break;
      case 1:
        text.insert(at, kPieces[rng.below(std::size(kPieces))]);
        break;
      case 2:
        text.erase(at, 1 + rng.below(8));
        break;
      default: {
        // A number becomes another.
        const std::size_t digit = text.find_first_of("0123456789", at);
        if (digit != std::string::npos)
          text.replace(digit, 1, kPieces[rng.below(std::size(kPieces))]);
      }
    }
  }
  return text;
}

}  // namespace

TEST_CASE("workload: damaged config.json files give a shape or an error") {
  const std::vector<std::string> texts = samples();
  REQUIRE(texts.size() >= 40);
  int shapes = 0, errors = 0;
  for (std::uint64_t seed = 0; seed < 4000; ++seed) {
    CAPTURE(seed);
    Rng rng{seed, "damaged config"};
    const std::string text = damaged(texts[rng.below(texts.size())], rng);
    try {
      const ModelShape shape = read_hf_config(text, "damaged.json");
      ++shapes;
      CHECK(shape.layers >= 1);
      CHECK(shape.heads >= 1);
      CHECK(shape.head_dim >= 1);
      CHECK(shape.ffn >= 1);
      CHECK(shape.vocab >= 1);
      CHECK(shape.heads % shape.kv_heads == 0);
      CHECK(count_parameters(shape).total > 0);
    } catch (const UserError& error) {
      ++errors;
      CHECK(std::string{error.what()}.rfind("damaged.json", 0) == 0);
    }
  }
  CHECK(shapes > 100);
  CHECK(errors > 1000);
}

TEST_SUITE_END();
