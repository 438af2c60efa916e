// Plain fluids over routes, worked by hand: 50,000 B/us, packets of 4096 + 64 B, so wire bytes are 1.015625 x.
#include <doctest/doctest.h>

#include "models/network/transport/fluid_transport.hpp"
#include "sim/base/units.hpp"

using namespace stepcast;
using namespace stepcast::network;
using namespace stepcast::literals;

namespace {

constexpr double kRate = 50e9;

double us(TimePoint time) { return time.seconds() * 1e6; }

std::vector<Wire> wires(std::uint32_t count) {
  std::vector<Wire> row;
  for (std::uint32_t i = 0; i < count; ++i) row.push_back({kRate, 1_us, i, i + 1});
  return row;
}

}  // namespace

TEST_SUITE_BEGIN("unit");

// One wire each way in: shared at 25,000 B/us until the short one's 1.015625 MB are through at 40.625 us; the
// other has as much left, 20.3125 us alone. Three wires: 2 x 3 us latency, 2 x 0.0832 us store and forward.
TEST_CASE("fluid transport: two messages share a wire, then one is alone") {
  Traffic traffic{.wires = wires(3), .routes = {{0, 1, 2}}, .messages = {{1e6, {}, {0}}, {2e6, {}, {0}}}};
  const auto ends = run_fluid(traffic, kRoceFormat);
  CHECK(us(ends[0].end) == doctest::Approx(40.625 + 6.1664).epsilon(1e-9));
  CHECK(us(ends[1].end) == doctest::Approx(60.9375 + 6.1664).epsilon(1e-9));
}

// Spread over two middle wires each carries half; the shared first wire carries all of it: 20.3125 us alone.
TEST_CASE("fluid transport: a message spread over two routes loads their common wire once") {
  Traffic traffic{.wires = wires(4), .routes = {{0, 1, 3}, {0, 2, 3}}, .messages = {{1e6, {}, {0, 1}}}};
  CHECK(us(run_fluid(traffic, kRoceFormat)[0].end) == doctest::Approx(20.3125 + 6.1664).epsilon(1e-9));
}

// The second starts when the first is acknowledged at 20.3125 + 2 us, the third at its own later time.
TEST_CASE("fluid transport: a message follows another, not before its own start") {
  Traffic traffic{.wires = wires(1), .routes = {{0}},
                  .messages = {{.bytes = 1e6, .routes = {0}},
                                {.bytes = 1e6, .routes = {0}, .after = 0},
                                {.bytes = 1e6, .start = TimePoint::at(100_us), .routes = {0}, .after = 1}}};
  const auto ends = run_fluid(traffic, kRoceFormat);
  CHECK(us(ends[1].start) == doctest::Approx(22.3125).epsilon(1e-9));
  CHECK(us(ends[1].end) == doctest::Approx(44.625).epsilon(1e-9));
  CHECK(us(ends[2].start) == doctest::Approx(100.0).epsilon(1e-9));
}

TEST_SUITE_END();
