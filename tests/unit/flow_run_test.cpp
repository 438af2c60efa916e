// Flows alone on a fabric, worked out by hand.
#include <doctest/doctest.h>

#include <vector>

#include "sim/run/flow_run.hpp"
#include "tests/support/run_fixture.hpp"

using namespace stepcast;
using namespace stepcast::run;
using doctest::Approx;

TEST_SUITE_BEGIN("unit");

namespace {

constexpr double kNicBytesPerSecond = 48e9;  // 50 GB/s at 96 %, the narrowest link between hosts

// One NIC a node, four nodes a leaf.
topology::Fabric small() {
  scenario::Cluster cluster = topology::test::cluster_of(8, "clos");
  cluster.fabric->nics_per_node = 1;
  cluster.fabric->leaf_ports = 4;
  return topology::build_fabric(topology::test::nvswitch_box(), cluster);
}

std::vector<double> ends(const topology::Fabric& fabric, const PathRules& rules, const std::vector<FlowSpec>& flows) {
  const topology::Router router{fabric};
  LinkPaths paths{fabric, rules};
  std::vector<double> seconds;
  for (const TimePoint end : run_flows(router, paths, flows).end) seconds.push_back((end - TimePoint{}).seconds());
  return seconds;
}

double latency_s(const topology::Fabric& fabric, std::uint32_t from, std::uint32_t to) {
  return topology::Router{fabric}.path(from, to).latency.seconds();
}

}  // namespace

// GPU 0 sends 48 MB to node 5 and 96 MB to node 6: both leave by node 0's one NIC at 24 GB/s. The first ends
// after 2 ms; the second has 48 MB left then and takes 1 ms more.
TEST_CASE("flow run: two flows share a NIC until one ends") {
  const topology::Fabric fabric = small();
  const auto end = ends(fabric, {}, {{0, 40, Bytes{48'000'000}, {}}, {0, 48, Bytes{96'000'000}, {}}});
  const double latency = latency_s(fabric, 0, 40);
  CHECK(end[0] == Approx(latency + 2e-3).epsilon(1e-9));
  CHECK(end[1] == Approx(latency + 3e-3).epsilon(1e-9));
}

TEST_CASE("flow run: a flow that starts later ends later by as much") {
  const topology::Fabric fabric = small();
  const auto end = ends(fabric, {}, {{0, 40, Bytes{48'000'000}, {}}, {8, 48, Bytes{48'000'000}, Duration::from_seconds(5e-3)}});
  CHECK(end[1] - end[0] == Approx(5e-3).epsilon(1e-9));
}

// 96 MB at 48 GB/s would take 2 ms. At 1 ms the NIC's link drops to half: what is left then goes at 24 GB/s.
TEST_CASE("flow run: a link that slows down slows its flows from then on") {
  const topology::Fabric fabric = small();
  const scenario::Failure slow{.link = "node0/nic0 -> leaf0", .switch_name = {}, .at = Duration::from_seconds(1e-3), .fraction = 0.5};
  const PathRules rules{.changes = topology::find_failures(fabric, {&slow, 1})};
  const auto end = ends(fabric, rules, {{0, 40, Bytes{96'000'000}, {}}});
  const double moved = (1e-3 - latency_s(fabric, 0, 40)) * kNicBytesPerSecond;
  CHECK(end[0] == Approx(1e-3 + (96e6 - moved) / (kNicBytesPerSecond / 2)).epsilon(1e-9));
}

// A spine that dies under way takes no bytes with it: with hashed paths, flows move to those that are left,
// and every byte arrives.
TEST_CASE("flow run: flows leave a spine that dies") {
  const topology::Fabric fabric = small();
  const topology::Router router{fabric};
  const scenario::Failure dies{.link = {}, .switch_name = "spine0", .at = Duration::from_seconds(1e-3)};
  const PathRules rules{.policy = network::PathPolicy::kEcmp, .changes = topology::find_failures(fabric, {&dies, 1})};
  LinkPaths paths{fabric, rules};
  std::vector<FlowSpec> flows;
  for (std::uint32_t node = 0; node < 4; ++node) flows.push_back({node * 8, (node + 4) * 8, Bytes{96'000'000}, {}});
  const FlowRunResult result = run_flows(router, paths, flows);
  double into_leaf = 0.0;
  for (std::uint32_t slot = 0; slot < paths.slots().size(); ++slot) {
    const auto [from, to] = paths.slots().kinds(slot);
    if (paths.slots().carries(slot) && from == topology::DeviceKind::kSpine && to == topology::DeviceKind::kLeaf) into_leaf += result.carried[slot];
  }
  CHECK(into_leaf == Approx(4 * 96e6).epsilon(1e-9));
  for (const TimePoint end : result.end) CHECK((end - TimePoint{}).seconds() >= 2e-3);
}

TEST_SUITE_END();
