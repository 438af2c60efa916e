// The file form loses nothing, and no file, however broken, does worse than a UserError.
#include <doctest/doctest.h>

#include <string>

#include "sim/base/random.hpp"
#include "sim/plan/check.hpp"
#include "sim/plan/memory_timeline.hpp"
#include "sim/plan/plan_file.hpp"
#include "sim/plan/print.hpp"
#include "tests/support/random_plan.hpp"

using namespace stepcast;
using namespace stepcast::plan;

TEST_SUITE_BEGIN("property");

TEST_CASE("plan file: reading what was written gives the same plan and the same text") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    const Plan plan = test::random_plan(seed);
    const std::string text = to_file_text(plan);
    const Plan back = from_file_text(text, "memory");
    REQUIRE(back == plan);
    REQUIRE(to_file_text(back) == text);
  }
}

namespace {

// One random edit: a byte changed, a piece cut, doubled or moved, a number replaced, the end lost.
std::string mutated(std::string text, Rng& rng) {
  const auto place = [&] { return rng.below(text.size()); };
  switch (rng.below(6)) {
    case 0: text[place()] = static_cast<char>(rng.below(256)); break;
    case 1: text.erase(place(), 1 + rng.below(40)); break;
    case 2: text.resize(place()); break;
    case 3: {
      const std::size_t from = place();
      text.insert(place(), text.substr(from, 1 + rng.below(200)));
      break;
    }
    case 4: {
      static constexpr const char* kNumbers[] = {"-1", "99999999999999999999", "9223372036854775807", "4294967295",
                                                 "255", "1e999", "nan", "0x10", "", "-", "\"", "#"};
      const std::size_t digit = text.find_first_of("0123456789", place());
      if (digit == std::string::npos) break;
      const std::size_t end = text.find_first_not_of("0123456789", digit);
      text.replace(digit, (end == std::string::npos ? text.size() : end) - digit, kNumbers[rng.below(12)]);
      break;
    }
    default: {
      const std::size_t line = text.find('\n', place());
      if (line == std::string::npos) break;
      text.erase(line, text.find('\n', line + 1) - line);
    }
  }
  return text.empty() ? "x" : text;
}

}  // namespace

TEST_CASE("plan file: mutated and truncated files give a plan or a UserError") {
  int plans = 0;
  int refused = 0;
  for (std::uint64_t seed = 0; seed < 1500; ++seed) {
    CAPTURE(seed);
    Rng rng{seed, "fuzz"};
    const Plan whole = test::random_plan(seed % 20);
    std::string text = to_file_text(whole);
    for (std::uint64_t edits = 1 + rng.below(4); edits > 0; --edits) text = mutated(std::move(text), rng);
    try {
      const Plan plan = from_file_text(text, "fuzz.plan");
      ++plans;
      if (check(plan).empty()) {
        for (const Program& program : plan.programs) memory_timeline(program);
      }
      REQUIRE(from_file_text(to_file_text(plan), "again") == plan);
      REQUIRE_FALSE(print_plan(plan).empty());
      (void)diff(whole, plan);  // must end, whatever it finds
    } catch (const UserError& error) {
      ++refused;
      REQUIRE(std::string{error.what()}.starts_with("fuzz.plan:"));
    }
  }
  CHECK(plans > 50);
  CHECK(refused > 500);
}

TEST_CASE("plan diff: one lost instruction is the one difference") {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    CAPTURE(seed);
    const Plan plan = test::random_plan(seed);
    REQUIRE(diff(plan, plan).empty());
    Plan other = plan;
    Rng rng{seed, "lost"};
    Program& program = other.programs[rng.below(other.programs.size())];
    const std::uint64_t lost = rng.below(program.instructions.size());
    program.instructions.erase(program.instructions.begin() + static_cast<std::ptrdiff_t>(lost));
    CHECK(diff(plan, other).size() == 1);
    CHECK(diff(other, plan).size() == 1);
  }
}

TEST_SUITE_END();
