// Choices and QP shares by hand; routes and capacities that change under way.
#include <doctest/doctest.h>

#include <array>
#include <vector>

#include "models/network/flow_header.hpp"
#include "models/network/link_network.hpp"
#include "models/network/path_policy.hpp"

using namespace stepcast;
using namespace stepcast::network;

TEST_SUITE_BEGIN("unit");

TEST_CASE("path policy: the least loaded, ties by the flow's own number") {
  const std::array<std::int64_t, 5> loads{4, 2, 7, 2, 2};
  CHECK(least_loaded(loads, 0) == 1);
  CHECK(least_loaded(loads, 1) == 3);
  CHECK(least_loaded(loads, 5) == 4);
  CHECK(least_loaded(std::array<std::int64_t, 1>{9}, 123) == 0);
  CHECK(pinned_choice(19, 16) == 3);
}

// Ten messages on four QPs in turn: 3, 3, 2, 2 of them. Two messages leave two QPs idle.
TEST_CASE("path policy: split and round-robin shares") {
  CHECK(qp_shares(QpMode::kSplit, 4, 1) == std::vector<double>{0.25, 0.25, 0.25, 0.25});
  CHECK(qp_shares(QpMode::kRoundRobin, 4, 10) == std::vector<double>{0.3, 0.3, 0.2, 0.2});
  CHECK(qp_shares(QpMode::kRoundRobin, 4, 2) == std::vector<double>{0.5, 0.5, 0.0, 0.0});
  CHECK(qp_shares(QpMode::kRoundRobin, 1, 7) == std::vector<double>{1.0});
}

TEST_CASE("path policy: source ports") {
  CHECK(source_port(SourcePort::kFixed, 1, 2, 99) == 0xC000);
  CHECK(source_port(SourcePort::kRandom, 1, 2, 0xFFFF1234) == 0xD234);
  CHECK(source_port(SourcePort::kFlowLabel, 1, 2, 0x12345) == 0xE341);
  CHECK(source_port(SourcePort::kQp, 0x1000, 0x2003, 99) == source_port_of_label(0x03020));
}

namespace {

// Fails the first link at 4 s and moves the route to the second.
struct Scene final : engine::EventTarget, FlowListener {
  engine::Engine engine;
  LinkNetwork net{engine, *this, std::array<double, 2>{10.0, 5.0}};
  RouteId route = net.add_route({{flow::LinkIndex{0u}, 1.0}});
  std::vector<TimePoint> ends;

  void on_flow_done(std::uint64_t) override { ends.push_back(engine.now()); }
  void on_event(engine::Engine&, std::uint32_t, std::uint64_t) override {
    net.set_capacity(flow::LinkIndex{0u}, 0.0);
    net.move_route(route, {{flow::LinkIndex{1u}, 2.0}});
  }
  [[nodiscard]] std::string_view target_name() const override { return "scene"; }
};

}  // namespace

// 100 B at 10 B/s: 40 B by 4 s. Then 5 B/s of a link on which each byte counts twice: 2.5 B/s, 60 B take 24 s.
TEST_CASE("link network: a flow goes on with what it has left on other links") {
  Scene scene;
  scene.net.start(scene.route, 100.0, std::nullopt, 1);
  scene.engine.at(TimePoint::at(Duration::from_seconds(4.0)), engine::Phase::kFault, scene, 0);
  scene.engine.run(TimePoint::max(), 100);
  REQUIRE(scene.ends.size() == 1);
  CHECK(scene.ends[0].since_start().seconds() == doctest::Approx(28.0));
  CHECK_FALSE(scene.net.busy(scene.route));
  const std::vector<double> carried = scene.net.carried_by_link();
  CHECK(carried[0] == doctest::Approx(40.0));
  CHECK(carried[1] == doctest::Approx(120.0));
}

TEST_SUITE_END();
