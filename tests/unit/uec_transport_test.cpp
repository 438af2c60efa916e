// UEC: the window by hand, then whole transfers. Hosts 0 to 9, switches from 10; a full packet of 4150 B takes 0.083 us.
#include <doctest/doctest.h>

#include "models/network/transport/nscc.hpp"
#include "models/network/transport/uec_transport.hpp"
#include "tests/support/small_traffic.hpp"

using namespace stepcast;
using namespace stepcast::network;
using stepcast::test::completion_us;
using stepcast::test::SmallTraffic;

namespace {

// 400 Gb/s, 12 us: four times the reference network, so a = 4. target = 9 us, b = 0.75.
constexpr double kBase_s = 12e-6;
constexpr double kLargest = 1.5 * 50e9 * kBase_s;  // 900 kB
const NsccScale kScale = nscc_scale(50e9, kBase_s, kUecFormat, {});
constexpr double kPacket = 4150.0;
constexpr double kMessage = 1000 * 4086.0;        // bytes
constexpr double kAlone_us = 1000 * 4150 / 50e3;  // on one wire

// Trims until `bytes` are off the window, at one instant.
Nscc shrunk(double bytes) {
  Nscc control{kScale, {}};
  control.on_ack(1e-6, kBase_s, false, 0.0, 0.0);  // quick adapt has looked
  control.on_trim(1e-6, kBase_s, bytes, 0.0);
  return control;
}

}  // namespace

TEST_SUITE_BEGIN("unit");

TEST_CASE("nscc: the scale of a network four times the reference") {
  CHECK(kScale.a == doctest::Approx(4.0));
  CHECK(kScale.alpha == doctest::Approx(4 * 4086 * 4.0 * 0.75 / 9e-6));
  CHECK(kScale.fi == doctest::Approx(5 * 4086 * 4.0));
  CHECK(kScale.eta == doctest::Approx(0.15 * 4086 * 4.0));
}

TEST_CASE("nscc: starts at one and a half round trips, a trim takes its bytes off, one packet is the least") {
  CHECK(Nscc{kScale, {}}.window_bytes() == doctest::Approx(kLargest));
  CHECK(shrunk(100e3).window_bytes() == doctest::Approx(kLargest - 100e3));
  CHECK(shrunk(2e6).window_bytes() == doctest::Approx(kPacket));
}

// One acknowledgement of more than 8 packets, 3 us late: W += alpha A (9 - 3 us) / W, and eta, for a round trip has passed.
TEST_CASE("nscc: proportional increase") {
  Nscc control = shrunk(500e3);
  const double before = control.window_bytes();
  control.on_ack(13e-6, kBase_s + 3e-6, false, 40e3, 0.0);
  CHECK(control.window_bytes() == doctest::Approx(before + kScale.alpha * 40e3 * 6e-6 / before + kScale.eta));
}

// Late but not marked: W += fi A / W, whatever the delay.
TEST_CASE("nscc: fair increase") {
  Nscc control = shrunk(500e3);
  const double before = control.window_bytes();
  control.on_ack(13e-6, kBase_s + 10e-6, false, 40e3, 0.0);
  CHECK(control.window_bytes() == doctest::Approx(before + kScale.fi * 40e3 / before + kScale.eta));
}

// A whole window has come back in time: W += A a / 4 from then on. The first 60 kB are less than W = 100 kB and raise
// it proportionally; with the next 100 kB it is a window.
TEST_CASE("nscc: fast increase after a window without delay") {
  Nscc control = shrunk(800e3);
  control.on_ack(2e-6, kBase_s, false, 60e3, 0.0);
  const double before = control.window_bytes();
  CHECK(before < 160e3);
  control.on_ack(3e-6, kBase_s, false, 100e3, 0.0);
  CHECK(control.window_bytes() == doctest::Approx(before + 100e3));
}

// Marked and late for long: D is near d = 18 us, so W falls by 0.8 (D - 9) / D towards 0.4, once a base round trip.
TEST_CASE("nscc: multiplicative decrease, at most once a round trip") {
  Nscc control{kScale, {}};
  for (int i = 0; i < 400; ++i) control.on_ack(1e-6, kBase_s + 18e-6, true, 0.0, 0.0);  // D settles, too early to act
  CHECK(control.window_bytes() == doctest::Approx(kLargest));
  control.on_ack(14e-6, kBase_s + 18e-6, true, 0.0, 0.0);
  const double once = control.window_bytes() - kScale.eta;
  CHECK(once == doctest::Approx(0.6 * kLargest).epsilon(0.02));
  control.on_ack(15e-6, kBase_s + 18e-6, true, 0.0, 0.0);
  CHECK(control.window_bytes() == doctest::Approx(once + kScale.eta));
}

// Trims, and only 30 kB have arrived since quick adapt looked at 1 us; its next look is after 12 + 9 us.
TEST_CASE("nscc: quick adapt falls to what arrived") {
  Nscc control = shrunk(100e3);
  control.on_ack(10e-6, kBase_s + 9e-6, true, 30e3, 0.0);
  control.on_trim(23e-6, kBase_s, kPacket, 200e3);
  CHECK(control.window_bytes() == doctest::Approx(30e3));
  // What was in flight is ignored: marks and trims change nothing until 200 kB are accounted for.
  control.on_trim(24e-6, kBase_s, kPacket, 200e3);
  CHECK(control.window_bytes() == doctest::Approx(30e3));
}

TEST_CASE("uec transport: alone at line rate") {
  SmallTraffic small;
  small.send(kMessage, {0, 10, 11, 1});
  CHECK(completion_us(run_uec(small.traffic(), {}, {.seed = 1})[0]) == doctest::Approx(kAlone_us + 2 * 0.083 + 6 + 3 * 0.00128).epsilon(1e-3));
}

// Eight senders, one receiver: the wire to it is never idle and no byte is sent twice over it.
TEST_CASE("uec transport: incast takes as long as the receiver's wire") {
  SmallTraffic small;
  for (std::uint32_t host = 0; host < 8; ++host) small.send(kMessage, {host, 10 + host, 20, 9});
  double last_us = 0.0;
  for (const Completion& end : run_uec(small.traffic(), {}, {.seed = 1})) last_us = std::max(last_us, completion_us(end));
  CHECK(last_us >= 8 * kAlone_us);
  CHECK(last_us <= 8 * kAlone_us * 1.06);
}

TEST_CASE("uec transport: a follower starts when the first has ended") {
  SmallTraffic small;
  small.send(100e3, {0, 10, 1});
  small.send(100e3, {1, 10, 2});
  Traffic traffic = small.traffic();
  traffic.messages[1].after = 0;
  const auto ends = run_uec(traffic, {}, {});
  CHECK(ends[1].start == ends[0].end);
}

TEST_SUITE_END();
