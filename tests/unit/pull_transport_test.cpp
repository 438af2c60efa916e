// Receiver-driven transports on trimming switches, and the choice of paths. Hosts 0 to 9, switches from 10.
// A full packet of 4160 B takes 0.0832 us on a wire, an acknowledgement of 64 B 0.00128 us.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "models/network/transport/path_choice.hpp"
#include "models/network/transport/pull_transport.hpp"
#include "tests/support/small_traffic.hpp"

using namespace stepcast;
using namespace stepcast::network;
using stepcast::test::completion_us;
using stepcast::test::SmallTraffic;

namespace {

constexpr double kMessage = 1000 * 4096.0;   // bytes
constexpr double kAlone_us = 1000 * 0.0832;  // on one wire

std::vector<Completion> run(const SmallTraffic& small, const PullParameters& parameters = ndp_parameters()) {
  return run_pull(small.traffic(), parameters, {.seed = 1});
}

}  // namespace

TEST_SUITE_BEGIN("unit");

TEST_CASE("pull transport: packets within the first window go at line rate") {
  SmallTraffic small;
  small.send(10 * 4096, {0, 10, 1});
  for (const PullParameters& parameters : {ndp_parameters(), eqds_parameters()}) {
    CHECK(completion_us(run(small, parameters)[0]) == doctest::Approx(11 * 0.0832 + 2 + 2 * (0.00128 + 1)).epsilon(2e-3));
  }
}

// A window of 10 packets (0.83 us) against a round trip of 4 us: one pull a packet, 10 packets a round trip of
// 4 us + 2 packet times + 2 acknowledgement times until all 100 are sent.
TEST_CASE("pull transport: a small window is pulled once a round trip") {
  SmallTraffic small;
  small.send(100 * 4096, {0, 10, 1});
  const double round_trip = 4 + 2 * 0.0832 + 2 * 0.00128;
  CHECK(completion_us(run(small, {.window_bytes = 10 * 4160.0})[0]) == doctest::Approx(10 * round_trip + 9 * 0.0832).epsilon(0.03));
}

// Three senders, two of which enter by one wire: the receiver pulls them in turn, at 0.99 of its link, so that the
// one alone on its ingress has no advantage (it has one under priority flow control, roce_transport_test).
TEST_CASE("pull transport: a receiver's senders get equal shares") {
  SmallTraffic small;
  small.send(kMessage, {0, 10, 11, 3});
  small.send(kMessage, {1, 10, 11, 3});
  small.send(kMessage, {2, 11, 3});
  for (const Completion& end : run(small)) CHECK(completion_us(end) == doctest::Approx(3 * kAlone_us / 0.99).epsilon(0.06));
}

// Hosts 0 and 1 meet inside the network on the way to two receivers, each of which pulls at line rate: half of what
// they send is trimmed, for ever, and each gets half the wire but for the headers.
TEST_CASE("pull transport: senders that collide inside the network share by being trimmed") {
  SmallTraffic small;
  small.send(kMessage, {0, 10, 11, 3});
  small.send(kMessage, {1, 10, 11, 4});
  for (const Completion& end : run(small)) CHECK(completion_us(end) == doctest::Approx(2 * kAlone_us).epsilon(0.1));
}

// The same two with two ways between the switches and packets spread over both: no collision.
TEST_CASE("pull transport: spreading over two ways doubles what fits") {
  SmallTraffic small;
  small.spread(kMessage, {{0, 10, 20, 11, 3}, {0, 10, 21, 11, 3}});
  small.spread(kMessage, {{1, 10, 20, 11, 4}, {1, 10, 21, 11, 4}});
  for (const PullParameters& parameters : {ndp_parameters(), eqds_parameters()}) {
    for (const Completion& end : run(small, parameters)) CHECK(completion_us(end) == doctest::Approx(kAlone_us + 8).epsilon(0.12));
  }
}

TEST_CASE("pull transport: two runs of one seed are the same, of another they may differ") {
  SmallTraffic small;
  for (std::uint32_t host = 0; host < 8; ++host) small.spread(2e6, {{host, 10, 20, 11, 8}, {host, 10, 21, 11, 8}});
  const auto first = run_pull(small.traffic(), ndp_parameters(), {.seed = 1});
  const auto second = run_pull(small.traffic(), ndp_parameters(), {.seed = 1});
  const auto other = run_pull(small.traffic(), ndp_parameters(), {.seed = 2});
  bool differs = false;
  for (std::size_t i = 0; i < first.size(); ++i) {
    CHECK(first[i].end == second[i].end);
    differs = differs || first[i].end != other[i].end;
  }
  CHECK(differs);
}

TEST_CASE("path choice: permuted, every route comes once before any comes again") {
  Rng random{1, "test"};
  PathChoice paths{Spreading::kPermuted, 16, 1, random};
  for (int cycle = 0; cycle < 5; ++cycle) {
    std::set<std::uint32_t> seen;
    for (int i = 0; i < 16; ++i) seen.insert(paths.next(random).route);
    CHECK(seen.size() == 16);
  }
}

TEST_CASE("path choice: entropies hit routes unequally, and a bad one is passed over once") {
  Rng random{1, "test"};
  PathChoice paths{Spreading::kEntropies, 16, 128, random};
  std::vector<int> packets(16, 0);
  std::set<std::uint32_t> entropies;
  for (int i = 0; i < 128; ++i) {
    const PathChoice::Path path = paths.next(random);
    ++packets[path.route];
    entropies.insert(path.entropy);
  }
  CHECK(entropies.size() == 128);
  CHECK(*std::max_element(packets.begin(), packets.end()) > 8);
  paths.bad(5);
  std::size_t fives = 0;
  for (int i = 0; i < 127; ++i) fives += paths.next(random).entropy == 5 ? 1 : 0;
  CHECK(fives == 0);
  for (int i = 0; i < 128; ++i) fives += paths.next(random).entropy == 5 ? 1 : 0;
  CHECK(fives == 1);
}

TEST_CASE("path choice: what came back clean is used again first") {
  Rng random{1, "test"};
  PathChoice paths{Spreading::kRecycled, 16, 128, random};
  paths.good(77);
  paths.good(3);
  CHECK(paths.next(random).entropy == 77);
  CHECK(paths.next(random).entropy == 3);
}

TEST_SUITE_END();
