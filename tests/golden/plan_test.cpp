// Hand-written plans in tests/golden/plan: how they print, come back, differ and are refused.
#include <doctest/doctest.h>

#include <string>

#include "sim/base/text.hpp"
#include "sim/plan/check.hpp"
#include "sim/plan/plan_file.hpp"
#include "sim/plan/print.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/source_dir.hpp"

using namespace stepcast;
using namespace stepcast::plan;

TEST_SUITE_BEGIN("golden");

namespace {

Plan golden_plan(const std::string& name) { return load_plan(test::golden_path("plan/" + name + ".plan")); }

std::string errors_of(const std::string& name) {
  std::string text;
  for (const PlanError& error : check(golden_plan(name))) text += to_text(error) + "\n";
  return text;
}

}  // namespace

TEST_CASE("plan golden: the plan is sound and its file is what would be written") {
  const Plan plan = golden_plan("two_stages");
  CHECK(check(plan).empty());
  test::check_golden("plan/two_stages.plan", to_file_text(plan));
}

TEST_CASE("plan golden: printing") {
  const Plan plan = golden_plan("two_stages");
  test::check_golden("plan/two_stages.txt", print_plan(plan));
  test::check_golden("plan/two_stages.range.txt",
                     print_plan(plan, {.program = ProgramId{std::size_t{0}}, .first = 5, .count = 3}));
  test::check_golden("plan/two_stages.summary.txt", print_plan(plan, {.instructions = false}));
}

TEST_CASE("plan golden: errors name worker, instruction and source operator") {
  for (const char* name : {"lost_receive", "swapped_meetings", "lifetimes", "other_collective"}) {
    CAPTURE(name);
    test::check_golden(std::string{"plan/"} + name + ".errors.txt", errors_of(name));
  }
}

TEST_CASE("plan golden: differences") {
  const Plan plan = golden_plan("two_stages");
  CHECK(diff(plan, plan).empty());
  std::string text;
  for (const char* name : {"lost_receive", "swapped_meetings", "lifetimes", "other_collective"}) {
    text += std::string{name} + "\n";
    for (const std::string& line : diff(plan, golden_plan(name))) text += line + "\n";
  }
  Plan other = plan;
  other.degrees[Axis::kData] = 4;
  other.groups[1].stages.clear();
  other.groups.push_back({"dp", {Axis::kData}, {}});
  other.programs[1].kernels[0].attention->causal = false;
  text += "edited\n";
  for (const std::string& line : diff(plan, other)) text += line + "\n";
  test::check_golden("plan/two_stages.diff.txt", text);
}

TEST_CASE("plan golden: another numbering of labels, kernels, events and buffers is no difference") {
  const Plan plan = golden_plan("two_stages");
  Plan other = plan;
  Program& p = other.programs[0];
  std::swap(p.labels[0], p.labels[1]);
  std::swap(p.kernels[0], p.kernels[1]);
  std::swap(p.buffers[0], p.buffers[1]);
  const auto swapped = [](auto id) { return id.value() < 2 ? decltype(id){std::size_t{1} - id.index()} : id; };
  for (Buffer& b : p.buffers) b.label = swapped(b.label);
  for (Instruction& i : p.instructions) {
    i.label = swapped(i.label);
    if (auto* c = std::get_if<Compute>(&i.body)) c->kernel = swapped(c->kernel);
    if (auto* a = std::get_if<Alloc>(&i.body)) a->buffer = swapped(a->buffer);
    if (auto* f = std::get_if<Free>(&i.body)) f->buffer = swapped(f->buffer);
    if (auto* r = std::get_if<Record>(&i.body)) r->event = swapped(r->event);
    if (auto* w = std::get_if<Wait>(&i.body)) w->event = swapped(w->event);
  }
  CHECK(other != plan);
  CHECK(diff(plan, other).empty());
}

// The guide shows this very file; the block that starts with the version line is the example.
TEST_CASE("plan golden: the example of the guide is the golden plan") {
  const std::string guide = read_file(std::string{STEPCAST_SOURCE_DIR} + "/docs/guide/plan_format.md");
  const std::size_t begin = guide.find("```\nstepcast-plan 1\n");
  REQUIRE(begin != std::string::npos);
  const std::size_t end = guide.find("```\n", begin + 4);
  REQUIRE(end != std::string::npos);
  CHECK(guide.substr(begin + 4, end - begin - 4) == read_file(test::golden_path("plan/two_stages.plan")));
}

TEST_SUITE_END();
