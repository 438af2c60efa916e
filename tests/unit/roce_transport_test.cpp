// RoCE under priority flow control on networks that fit on the back of an envelope. Hosts 0 to 9, switches from 10.
// A full packet of 4160 B takes 0.0832 us on a wire, an acknowledgement of 64 B 0.00128 us.
#include <doctest/doctest.h>

#include "models/network/transport/fluid_transport.hpp"
#include "models/network/transport/roce_transport.hpp"
#include "tests/support/small_traffic.hpp"

using namespace stepcast;
using namespace stepcast::network;
using stepcast::test::completion_us;
using stepcast::test::SmallTraffic;

namespace {

constexpr double kMessage = 1000 * 4096.0;        // bytes
constexpr double kAlone_us = 1000 * 0.0832;       // on one wire

std::vector<Completion> run(const SmallTraffic& small) { return run_roce(small.traffic(), {}, {.seed = 1}); }

}  // namespace

TEST_SUITE_BEGIN("unit");

// Two wires: each sends it in turn and adds 1 us, and so back with 64 B.
TEST_CASE("roce transport: one packet") {
  SmallTraffic small;
  small.send(4096, {0, 10, 1});
  CHECK(completion_us(run(small)[0]) == doctest::Approx(2 * (0.0832 + 1) + 2 * (0.00128 + 1)).epsilon(1e-6));
}

// The second wire sends packet by packet what the first has sent: 11 packet times in all.
TEST_CASE("roce transport: ten packets pass two wires in eleven packet times") {
  SmallTraffic small;
  small.send(10 * 4096, {0, 10, 1});
  CHECK(completion_us(run(small)[0]) == doctest::Approx(11 * 0.0832 + 2 + 2 * (0.00128 + 1)).epsilon(1e-6));
}

// The last packet is as long as what is left: 1000 B and 64 B of header.
TEST_CASE("roce transport: a short last packet") {
  SmallTraffic small;
  small.send(1000, {0, 10, 1});
  CHECK(completion_us(run(small)[0]) == doctest::Approx(2 * (1064 / 50e3 + 1) + 2 * (0.00128 + 1)).epsilon(1e-6));
}

// Hosts 0 and 1 enter switch 11 through one wire, host 2 through its own; all go to host 3. Each ingress gets half,
// so host 2 has one half and ends at 2 message times, the others a quarter each and end at 3. Max-min would give each
// a third: all end at 3. The queues before the first pause (60 packets an ingress) blur it by a few per cent.
TEST_CASE("roce transport: a flow alone on its ingress gets the larger share (parking lot)") {
  SmallTraffic small;
  small.send(kMessage, {0, 10, 11, 3});
  small.send(kMessage, {1, 10, 11, 3});
  small.send(kMessage, {2, 11, 3});
  const auto ends = run(small);
  CHECK(completion_us(ends[2]) == doctest::Approx(2 * kAlone_us).epsilon(0.06));
  CHECK(completion_us(ends[0]) == doctest::Approx(3 * kAlone_us).epsilon(0.06));
  CHECK(completion_us(ends[1]) == doctest::Approx(3 * kAlone_us).epsilon(0.06));
  CHECK(completion_us(run_fluid(small.traffic(), kRoceFormat)[2]) == doctest::Approx(3 * kAlone_us).epsilon(0.06));
}

// Host 0 goes to host 3, where hosts 2 and 4 send too, each by its own ingress: a third each. Host 1 goes to host 5, which
// nobody else does, but shares the wire from 10 to 11, whose pauses stop it as well: it gets a third instead of the
// two thirds that max-min leaves it.
TEST_CASE("roce transport: a paused wire blocks those who go elsewhere (head of line)") {
  SmallTraffic small;
  small.send(kMessage, {0, 10, 11, 3});
  const std::uint32_t victim = small.send(kMessage, {1, 10, 11, 5});
  small.send(kMessage, {2, 11, 3});
  small.send(kMessage, {4, 11, 3});
  CHECK(completion_us(run_fluid(small.traffic(), kRoceFormat)[victim]) == doctest::Approx(1.5 * kAlone_us).epsilon(0.08));
  CHECK(completion_us(run(small)[victim]) == doctest::Approx(3 * kAlone_us).epsilon(0.1));
}

// Two messages of one host to two hosts: its NIC sends their packets in turn.
TEST_CASE("roce transport: messages of one host take turns") {
  SmallTraffic small;
  small.send(kMessage, {0, 10, 1});
  small.send(kMessage, {0, 10, 2});
  for (const Completion& end : run(small)) CHECK(completion_us(end) == doctest::Approx(2 * kAlone_us).epsilon(0.06));
}

// Quanta of 8 packets: 80 packets pass three wires in 82 packet times as single ones do, because a quantum moves on when
// its first packet has come in; their acknowledgements are 8 x 64 B.
TEST_CASE("roce transport: a quantum adds no delay a hop") {
  SmallTraffic small;
  small.send(80 * 4096, {0, 10, 11, 1});
  const double data_us = 82 * 0.0832 + 3;
  CHECK(completion_us(run_roce(small.traffic(), {}, {.quantum = 1})[0]) == doctest::Approx(data_us + 3 * (0.00128 + 1)).epsilon(1e-6));
  CHECK(completion_us(run_roce(small.traffic(), {}, {.quantum = 8})[0]) == doctest::Approx(data_us + 3 * (0.01024 + 1)).epsilon(1e-6));
}

TEST_CASE("roce transport: two runs are the same") {
  SmallTraffic small;
  for (std::uint32_t host = 0; host < 8; ++host) small.send(300e3 + 1000 * host, {host, 10 + host / 4, 20, 8});
  const auto first = run(small);
  const auto second = run(small);
  for (std::size_t i = 0; i < first.size(); ++i) CHECK(first[i].end == second[i].end);
}

TEST_SUITE_END();
