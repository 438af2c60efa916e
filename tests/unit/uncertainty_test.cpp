// The band of a forecast: independent deviations add up as squares, and each change is what a simulation with that figure moved gives.
#include <doctest/doctest.h>

#include <cmath>
#include <map>

#include "app/forecast/uncertainty.hpp"
#include "calibration/profile_parameters.hpp"
#include "sim/scenario/load.hpp"
#include "tests/support/source_dir.hpp"
#include "topologies/catalogue_keys.hpp"

using namespace stepcast;

TEST_SUITE_BEGIN("unit");

namespace {

struct Case {
  app::HardwareShelf shelf = app::load_shelf(app::DataFiles{.root = STEPCAST_SOURCE_DIR});
  scenario::Loaded loaded = scenario::load_scenario(STEPCAST_SOURCE_DIR "/configs/quickstart.yaml", {"batch.global=8"});
  app::Setup setup = app::prepare(shelf, loaded);

  Case() {
    for (const auto& p : calibration::parameters_of(setup.profile.profile)) deviate(setup.profile.profile, p.key, 0.0);
    for (const auto& p : calibration::parameters_of(setup.hardware.gpu)) deviate(setup.hardware.gpu, p.key, 0.0);
    for (const auto& p : calibration::parameters_of(setup.hardware.node)) deviate(setup.hardware.node, p.key, 0.0);
  }

  template <class T>
  static void deviate(T& object, const std::string& key, double relative) {
    const double value = *calibration::parameter_value(object, key);
    REQUIRE(calibration::change_figure(object, key, [&](auto& figure) {
      figure.plus_minus = calibration::detail::from_si<std::remove_cvref_t<decltype(figure.value)>>(relative * value);
    }));
  }
  [[nodiscard]] app::Uncertainty band(unsigned threads = 1) const { return app::propagate(shelf, loaded, setup, app::step_time(setup, true), {.threads = threads}); }
};

constexpr const char* kProducts = "gemm.mma_efficiency";
constexpr const char* kClock = "clock.sustained_fraction";

}  // namespace

TEST_CASE("uncertainty: figures without deviation make no band") {
  const Case c;
  const app::Uncertainty u = c.band();
  CHECK(u.figures == 0);
  CHECK(u.step_s == 0.0);
}

TEST_CASE("uncertainty: one figure's change is that of a simulation with it moved, and two add up as squares") {
  std::map<std::string, double> alone;
  for (const char* key : {kProducts, kClock}) {
    Case c;
    const double base = app::step_time(c.setup, true).seconds();
    Case::deviate(c.setup.profile.profile, key, 0.04);
    const app::Uncertainty u = c.band();
    REQUIRE(u.influences.size() == 1);
    CHECK(u.influences[0].plus_minus == doctest::Approx(0.04));
    app::Setup moved = c.setup;
    const double value = *calibration::parameter_value(moved.profile.profile, key);
    REQUIRE(calibration::set_parameter(moved.profile.profile, key, value + 0.04 * value));
    CHECK(u.influences[0].step_s == doctest::Approx(app::step_time(moved, true).seconds() - base).epsilon(1e-9));
    CHECK(u.influences[0].step_s < 0.0);  // faster
    CHECK(u.step_s == doctest::Approx(-u.influences[0].step_s));
    alone[key] = u.step_s;
  }
  Case both;
  for (const char* key : {kProducts, kClock}) Case::deviate(both.setup.profile.profile, key, 0.04);
  CHECK(both.band().step_s == doctest::Approx(std::hypot(alone[kProducts], alone[kClock])).epsilon(1e-9));
}

TEST_CASE("uncertainty: a link's figure moves the network, and is put back after it") {
  Case c;
  Case::deviate(c.setup.hardware.node, "scale_up_efficiency", 0.1);
  Case::deviate(c.setup.profile.profile, kProducts, 0.04);
  const app::Uncertainty u = c.band();
  REQUIRE(u.influences.size() == 2);
  Case only;
  Case::deviate(only.setup.profile.profile, kProducts, 0.04);
  const app::Uncertainty o = only.band();
  const auto& products = u.influences[0].figure == o.influences[0].figure ? u.influences[0] : u.influences[1];
  CHECK(products.step_s == o.influences[0].step_s);
}

TEST_CASE("uncertainty: the same at any number of threads") {
  Case c;
  for (const auto& p : calibration::parameters_of(c.setup.profile.profile)) {
    if (p.value > 0.0) Case::deviate(c.setup.profile.profile, p.key, 0.05);
  }
  const app::Uncertainty one = c.band(1);
  const app::Uncertainty four = c.band(4);
  CHECK(one.influences.size() > 10);
  REQUIRE(one.influences.size() == four.influences.size());
  CHECK(one.step_s == four.step_s);
  for (std::size_t i = 0; i < one.influences.size(); ++i) CHECK(one.influences[i].step_s == four.influences[i].step_s);
}
