// The points that `measure` times are plans that the checker accepts; known ones are left out.
#include <doctest/doctest.h>

#include "app/measure/measure_points.hpp"
#include "sim/plan/check.hpp"

using namespace stepcast;

TEST_SUITE_BEGIN("unit");

namespace {

using MakePoints = plan::Plan (*)(std::int32_t workers, bool quick, const std::set<std::string>& known);

void check_points(MakePoints make, std::int32_t workers, bool quick) {
  const plan::Plan plan = make(workers, quick, {});
  CHECK(plan::check(plan).empty());
  CHECK(plan.world_size() == workers);
  const plan::Program& program = plan.programs.front();
  std::set<std::string> names;
  for (std::size_t i = 0; i < program.instructions.size(); ++i) {
    const bool begins = i == 0 || program.instructions[i].layer != program.instructions[i - 1].layer;
    if (begins) CHECK(names.insert(program.labels[program.instructions[i].label.index()]).second);
  }
  CHECK(names.size() > 20);
  // All but one known: one is left.
  const std::string first = *names.begin();
  names.erase(first);
  const plan::Plan rest = make(workers, quick, names);
  CHECK(rest.programs.front().labels.at(rest.programs.front().instructions.front().label.index()) == first);
  CHECK(*rest.programs.front().instructions.back().layer == 0);
  names.insert(first);
  CHECK(make(workers, quick, names).programs.front().instructions.empty());
}

}  // namespace

TEST_CASE("measure: points are sound plans with names of their own") {
  for (const std::int32_t workers : {1, 2, 5}) {
    for (const bool quick : {true, false}) {
      check_points(app::cpu_points, workers, quick);
      check_points(app::gpu_points, workers, quick);
    }
  }
}

TEST_CASE("measure: points of a locked clock are named for it") {
  const plan::Plan plan = app::clock_points(1200, {});
  CHECK(plan::check(plan).empty());
  for (const std::string& label : plan.programs.front().labels) CHECK((label.empty() || label.ends_with(" at 1200 MHz")));
  CHECK(app::clock_points(1300, {plan.programs.front().labels.begin(), plan.programs.front().labels.end()}).programs.front().instructions.size() ==
        plan.programs.front().instructions.size());
}
