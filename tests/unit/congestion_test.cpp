// What congestion control leaves of a link, worked out by hand.
#include <doctest/doctest.h>

#include <array>
#include <vector>

#include "models/network/link_network.hpp"
#include "sim/run/flow_run.hpp"
#include "tests/support/run_fixture.hpp"

using namespace stepcast;
using namespace stepcast::network;
using doctest::Approx;

TEST_SUITE_BEGIN("unit");

namespace {

// Flows of 10 bytes that start at 0 on one link of 10 B/s, each bringing so many sources.
struct OneLink final : FlowListener {
  explicit OneLink(const Congestion& congestion) : net{engine, *this, std::array<double, 1>{10.0}, congestion} {}
  void on_flow_done(std::uint64_t tag) override {
    if (end.size() <= tag) end.resize(tag + 1);
    end[tag] = (engine.now() - TimePoint{}).seconds();
  }
  void start(double bytes, double sources) {
    net.start(net.add_route({{flow::LinkIndex{0u}, 1.0}}, {sources}), bytes, std::nullopt, started++);
  }
  engine::Engine engine;
  LinkNetwork net;
  std::uint64_t started = 0;
  std::vector<double> end;
};

}  // namespace

TEST_CASE("congestion: nothing is lost alone, `loss` from two sources on, and a step more at each power of two") {
  const Congestion congestion{.loss = 0.1, .per_doubling = 0.05};
  CHECK(congestion.eta(0.0) == 1.0);
  CHECK(congestion.eta(1.0) == 1.0);
  CHECK(congestion.eta(1.5) == 1.0);
  CHECK(congestion.eta(2.0) == Approx(0.9));
  CHECK(congestion.eta(3.0) == Approx(0.9));
  CHECK(congestion.eta(4.0 - 1e-9) == Approx(0.85));  // a sum of fractions
  CHECK(congestion.eta(64.0) == Approx(1.0 - 0.1 - 5 * 0.05));
  CHECK(Congestion{.loss = 0.1, .per_doubling = 0.5}.eta(64.0) == Approx(0.05));
  CHECK(Congestion{}.eta(64.0) == 1.0);
}

// Two flows of 10 B share 10 x 0.8 = 8 B/s: both end at 2.5 s. Alone: 1 s.
TEST_CASE("congestion: a link carries less while two sources share it") {
  OneLink link{{.loss = 0.2, .per_doubling = 0.0}};
  link.start(10.0, 1.0);
  link.start(10.0, 1.0);
  link.engine.run();
  CHECK(link.end == std::vector{2.5, 2.5});
}

// 4 B/s each: the one of 4 B ends at 1 s; the other has 6 B left then, and the whole 10 B/s to itself.
TEST_CASE("congestion: the capacity is that of the sources under way from each start and end on") {
  OneLink link{{.loss = 0.2, .per_doubling = 0.0}};
  link.start(4.0, 1.0);
  link.start(10.0, 1.0);
  link.engine.run();
  CHECK(link.end[0] == Approx(1.0));
  CHECK(link.end[1] == Approx(1.6));
}

// One fluid that stands for four sources loses as four flows do: 40 B at 10 x (1 - 0.2 - 0.1) = 7 B/s.
TEST_CASE("congestion: a fluid brings all sources that it stands for") {
  const Congestion congestion{.loss = 0.2, .per_doubling = 0.1};
  OneLink whole{congestion};
  whole.start(40.0, 4.0);
  whole.engine.run();
  OneLink parts{congestion};
  for (int i = 0; i < 4; ++i) parts.start(10.0, 1.0);
  parts.engine.run();
  CHECK(whole.end[0] == Approx(40.0 / 7.0));
  CHECK(parts.end[3] == Approx(40.0 / 7.0));
}

// GPUs of three hosts send 48 MB each to one card of 48 GB/s: 3 ms; with 20 % lost 3.75 ms. Each alone on its own card: nothing is lost.
TEST_CASE("congestion: an incast loses at the receiver's port, a permutation nowhere") {
  scenario::Cluster cluster = topology::test::cluster_of(4, "clos");
  cluster.fabric->nics_per_node = 1;
  const topology::Fabric fabric = topology::build_fabric(topology::test::nvswitch_box(), cluster);
  const topology::Router router{fabric};
  TransportCosts costs;
  costs.network.congestion = {.loss = 0.2, .per_doubling = 0.0};
  const auto last = [&](const std::vector<run::FlowSpec>& flows, const TransportCosts& transports) {
    const run::PathRules rules;
    run::LinkPaths paths{fabric, rules};
    double end = 0.0;
    for (const TimePoint t : run::run_flows(router, paths, flows, transports).end) end = std::max(end, (t - TimePoint{}).seconds());
    return end - router.path(8, 0).latency.seconds();
  };
  const Bytes bytes{48'000'000};
  const std::vector<run::FlowSpec> incast{{8, 0, bytes, {}}, {16, 0, bytes, {}}, {24, 0, bytes, {}}};
  const std::vector<run::FlowSpec> permutation{{8, 0, bytes, {}}, {16, 8, bytes, {}}, {24, 16, bytes, {}}};
  CHECK(last(incast, {}) == Approx(3e-3).epsilon(1e-6));
  CHECK(last(incast, costs) == Approx(3.75e-3).epsilon(1e-6));
  CHECK(last(permutation, costs) == Approx(1e-3).epsilon(1e-6));
}
