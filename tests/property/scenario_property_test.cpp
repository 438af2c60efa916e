// Damaged files: whatever is done to a good scenario, the reader gives a scenario or a UserError.
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "sim/base/file.hpp"
#include "sim/base/random.hpp"
#include "sim/scenario/load.hpp"
#include "sim/scenario/quantity.hpp"
#include "sim/scenario/write.hpp"
#include "tests/support/source_dir.hpp"

using namespace stepcast;
using namespace stepcast::scenario;
namespace fs = std::filesystem;

TEST_SUITE_BEGIN("property");

namespace {

std::vector<std::string> good_texts() {
  std::vector<std::string> texts;
  for (const char* name : {"quickstart", "llama3-70b-64xh100", "llama3-405b-16384xh100", "interconnect-70b"}) {
    texts.push_back(read_file(std::string{STEPCAST_SOURCE_DIR "/configs/"} + name + ".yaml"));
  }
  texts.push_back(starter_scenario());
  return texts;
}

// Bytes and fragments that matter to YAML, numbers and units.
const std::vector<std::string> kFragments{
    ":", ": ", "\n", "\n  ", "- ", "{", "}", "[", "]", "\"", "'", "#", "&a ", "*a", "<<: ", "!!int ", "---\n", "\t", "0", "-1", "1e999",
    "9223372036854775808", ".inf", "~", "true", "null", "400 Gb/s", "1e-30 us", "é", "\x80", "\xff\xfe", "? ", "| ", "> ", "%YAML 1.2\n", ",", "\\",
    "[[[[[[[[[[[[[[[[", "variants: [{name: a}]\n", "tp: 1000000\n", "  dp: 1000000\n", std::string(1, '\0')};

std::string mutate(std::string text, Rng& rng) {
  const auto edits = 1 + rng.below(4);
  for (std::uint64_t i = 0; i < edits; ++i) {
    const auto at = static_cast<std::size_t>(rng.below(text.size() + 1));
    const auto length = static_cast<std::size_t>(rng.below(12));
    switch (rng.below(6)) {
      case 0: text.resize(at); break;
      case 1: text.erase(at, length); break;
      case 2: text.insert(at, kFragments[static_cast<std::size_t>(rng.below(kFragments.size()))]); break;
      case 3: text.insert(at, text.substr(static_cast<std::size_t>(rng.below(text.size() + 1)), 4 * length)); break;
      case 4:
        if (at < text.size()) text[at] = static_cast<char>(rng.below(256));
        break;
      default:
        if (at < text.size()) text[at] = static_cast<char>('0' + rng.below(10));
    }
  }
  return text;
}

}  // namespace

TEST_CASE("scenario: damaged files are refused or read, never worse") {
  const auto texts = good_texts();
  int refused = 0;
  int accepted = 0;
  for (std::uint64_t seed = 0; seed < 4000; ++seed) {
    CAPTURE(seed);
    Rng rng{seed, "scenario mutation"};
    const std::string text = mutate(texts[static_cast<std::size_t>(seed % texts.size())], rng);
    try {
      const auto variants = load_variants_text(text, "m.yaml");
      ++accepted;
      // What is accepted can be printed and read again, to the same scenario.
      for (const Loaded& loaded : variants) {
        const std::string printed = print_effective(loaded.scenario);
        CAPTURE(printed);
        CHECK(load_scenario_text(printed, "p.yaml").scenario == loaded.scenario);
      }
    } catch (const UserError& error) {
      ++refused;
      CHECK(std::string{error.what()}.find("error: ") != std::string::npos);
    }
  }
  // Both happen often, so that neither half of the property is empty.
  CHECK(refused > 500);
  CHECK(accepted > 500);
}

TEST_CASE("scenario: damaged overrides are refused or read, never worse") {
  const std::string text = good_texts()[3];
  const std::vector<std::string> good{"parallel.tp=4", "variants[1].name=x", "cluster.fabric.nic=eth-10", "batch={global: 8}"};
  for (std::uint64_t seed = 0; seed < 1500; ++seed) {
    CAPTURE(seed);
    Rng rng{seed, "override mutation"};
    try {
      load_variants_text(text, "m.yaml", {mutate(good[static_cast<std::size_t>(seed % good.size())], rng)});
    } catch (const UserError& error) {
      CHECK(std::string{error.what()}.find("error: ") != std::string::npos);
    }
  }
}

TEST_CASE("scenario: deep nesting is an error, not a crash") {
  for (const std::size_t depth : {10, 1000, 100000}) {
    CAPTURE(depth);
    CHECK_THROWS_AS(load_scenario_text("name: " + std::string(depth, '['), "m.yaml"), UserError);
    std::string nested;
    for (std::size_t i = 0; i < std::min<std::size_t>(depth, 2000); ++i) nested += std::string(i, ' ') + "a:\n";
    CHECK_THROWS_AS(load_scenario_text(nested, "m.yaml"), UserError);
  }
}

TEST_CASE("scenario: printed quantities read back exactly") {
  for (const Dimension dimension : {Dimension::kDuration, Dimension::kBytes, Dimension::kBandwidth, Dimension::kFlops,
                                    Dimension::kFlopRate, Dimension::kFrequency, Dimension::kPower, Dimension::kEnergy,
                                    Dimension::kTemperature, Dimension::kMoney}) {
    for (std::uint64_t seed = 0; seed < 500; ++seed) {
      CAPTURE(seed);
      Rng rng{seed, "quantity"};
      double value = rng.uniform() * std::pow(10.0, rng.uniform(0.0, 17.0));
      if (seed % 2 == 0) value = std::round(value);
      const std::string text = print_quantity(value, dimension);
      CAPTURE(text);
      const ParsedQuantity parsed = parse_quantity(text, dimension);
      REQUIRE(parsed.base);
      CHECK(*parsed.base == value);
    }
  }
}

TEST_SUITE_END();
