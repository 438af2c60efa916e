// Headers, messages and sockets, worked out by hand.
#include <doctest/doctest.h>

#include "models/network/transport_cost.hpp"

using namespace stepcast;
using namespace stepcast::network;
using doctest::Approx;

TEST_SUITE_BEGIN("unit");

namespace {

Sockets sockets(std::int64_t threads, std::int64_t per_thread, double connection_rate) {
  return {.core_rate = 2e9, .connection_rate = connection_rate, .threads = threads, .sockets_per_thread = per_thread, .channels = 2};
}

}  // namespace

TEST_CASE("transport: headers leave 1448 of 1538 bytes to TCP, 8948 of 9038 with jumbo frames, 4096 of 4178 to RoCE") {
  CHECK(Framing{1500, 52, 38}.efficiency() == Approx(1448.0 / 1538.0));
  CHECK(Framing{9000, 52, 38}.efficiency() == Approx(8948.0 / 9038.0));
  CHECK(Framing{4096, 0, 82}.efficiency() == Approx(4096.0 / 4178.0));
}

// A core moves 2 GB/s. Without helpers one thread serves all connections: 2 GB/s whatever their number.
TEST_CASE("transport: the progress thread alone moves what one core does") {
  CHECK(sockets(0, 1, 5e9).rate(1) == Approx(2e9));
  CHECK(sockets(0, 1, 5e9).rate(2) == Approx(2e9));
}

// Four helpers a connection: 4 cores for one, 8 for two.
TEST_CASE("transport: helper threads come with each connection") {
  CHECK(sockets(4, 1, 5e9).rate(1) == Approx(8e9));
  CHECK(sockets(4, 1, 5e9).rate(2) == Approx(16e9));
}

// A cloud that holds a TCP connection to 0.6 GB/s: two of them 1.2, eight sockets of one thread each 4.8 > 2 of the core.
TEST_CASE("transport: connections limit where they are slower than cores") {
  CHECK(sockets(0, 1, 0.6e9).rate(2) == Approx(1.2e9));
  CHECK(sockets(1, 2, 0.6e9).rate(1) == Approx(1.2e9));
  CHECK(sockets(1, 8, 0.6e9).rate(1) == Approx(2e9));
}

// 5 us, and two copies that each take in 100 kB at 1 GB/s: 205 us beyond the bytes' own time; a message of 10 kB waits for 10 kB only.
TEST_CASE("transport: copies hold a message up by a chunk each") {
  const TransportCost cost{.per_message = Duration::microseconds(5), .chunk = Bytes{100'000}, .copies = 2, .sockets = {}};
  CHECK(cost.message_s(1e6, 1e9) == Approx(205e-6));
  CHECK(cost.message_s(1e4, 1e9) == Approx(25e-6));
}

// 10 us of latency and 5 us a message at 1 GB/s are 15 kB, two copies 200 kB: 215 kB take twice what their bytes do.
TEST_CASE("transport: at the half size a message reaches half of the rate") {
  const TransportCost cost{.per_message = Duration::microseconds(5), .chunk = Bytes{100'000}, .copies = 2, .sockets = {}};
  const double half = cost.half_size(10e-6, 1e9, 1e9);
  CHECK(half == Approx(215e3));
  CHECK(10e-6 + cost.message_s(half, 1e9) + half / 1e9 == Approx(2.0 * half / 1e9));
  // Copies ten times as fast as the network: 20 kB.
  CHECK(cost.half_size(10e-6, 1e9, 1e10) == Approx(35e3));
}
