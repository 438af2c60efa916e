// The points that `measure` times are plans that the checker accepts; known ones are left out.
#include <doctest/doctest.h>

#include "app/measure_points.hpp"
#include "sim/plan/check.hpp"

using namespace stepcast;

TEST_SUITE_BEGIN("unit");

TEST_CASE("measure: points are sound plans with names of their own") {
  for (const std::int32_t workers : {1, 2, 5}) {
    for (const bool quick : {true, false}) {
      const plan::Plan plan = app::cpu_points(workers, quick, {});
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
      const plan::Plan rest = app::cpu_points(workers, quick, names);
      CHECK(rest.programs.front().labels.at(rest.programs.front().instructions.front().label.index()) == first);
      CHECK(*rest.programs.front().instructions.back().layer == 0);
      names.insert(first);
      CHECK(app::cpu_points(workers, quick, names).programs.front().instructions.empty());
    }
  }
}
