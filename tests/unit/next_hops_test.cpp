// Next hops and all shortest paths of small fabrics, counted by hand.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "tests/support/topology_hardware.hpp"
#include "topologies/path_dag.hpp"

namespace stepcast::topology::test {

namespace {

// One NIC a node, four nodes a leaf. Two tiers: 8 nodes on 2 leaves, 4 spines. Three tiers: pods of 8
// nodes (2 leaves, 4 spines), 2 pods, each spine to 2 cores of its own plane (8 cores).
Fabric small(const char* preset, std::int64_t nodes) {
  scenario::Cluster cluster = cluster_of(nodes, preset);
  cluster.fabric->nics_per_node = 1;
  cluster.fabric->leaf_ports = 4;
  if (std::string_view{preset} == "clos-3tier") cluster.fabric->nodes_per_pod = 8;
  return build_fabric(nvswitch_box(), cluster);
}

std::vector<std::string> names(const Fabric& fabric, const std::vector<NextHops::Step>& steps) {
  std::vector<std::string> list;
  for (const NextHops::Step& step : steps) list.push_back(fabric.devices[step.to.device.index()].name);
  return list;
}

std::vector<std::string> names(const Fabric& fabric, const std::vector<LinkId>& links) {
  std::vector<std::string> list;
  for (const LinkId link : links) list.push_back(fabric.devices[fabric.links[link.index()].to.index()].name);
  return list;
}

DeviceId device(const Fabric& fabric, const std::string& name) {
  const auto it = std::find_if(fabric.devices.begin(), fabric.devices.end(), [&](const Device& d) { return d.name == name; });
  REQUIRE(it != fabric.devices.end());
  return DeviceId{static_cast<std::uint32_t>(it - fabric.devices.begin())};
}

LinkId link_between(const Fabric& fabric, const std::string& from, const std::string& to) {
  for (std::uint32_t id = 0; id < fabric.links.size(); ++id)
    if (fabric.devices[fabric.links[id].from.index()].name == from && fabric.devices[fabric.links[id].to.index()].name == to) return LinkId{id};
  FAIL("no link " << from << " -> " << to);
  return LinkId{0u};
}

using Names = std::vector<std::string>;

}  // namespace

TEST_SUITE_BEGIN("unit");

TEST_CASE("next hops: two tiers, and one spine fewer") {
  const Fabric fabric = small("clos", 8);
  NextHops hops{fabric};
  std::vector<NextHops::Step> links;
  hops.find(hops.source(0), 5, links);
  CHECK(names(fabric, links) == Names{"leaf0"});
  const NextHops::Place leaf = links[0].to;
  hops.find(leaf, 5, links);
  CHECK(names(fabric, links) == Names{"spine0", "spine1", "spine2", "spine3"});
  hops.find(leaf, 2, links);  // below the same leaf
  CHECK(names(fabric, links) == Names{"node2/nic0"});
  hops.set_usable(link_between(fabric, "spine2", "leaf1"), false);
  hops.find(leaf, 5, links);
  CHECK(names(fabric, links) == Names{"spine0", "spine1", "spine3"});
  hops.set_usable(link_between(fabric, "leaf0", "spine0"), false);
  hops.find(leaf, 5, links);
  CHECK(names(fabric, links) == Names{"spine1", "spine3"});
  hops.set_usable(link_between(fabric, "spine2", "leaf1"), true);
  hops.find(leaf, 5, links);
  CHECK(names(fabric, links) == Names{"spine1", "spine2", "spine3"});
}

// A switch that has sent a packet down does not send it up again: leaf1 -> spine is no way from spine to leaf0.
TEST_CASE("next hops: nobody climbs twice") {
  const Fabric fabric = small("clos", 8);
  NextHops hops{fabric};
  std::vector<NextHops::Step> links;
  for (const char* spine : {"spine0", "spine1", "spine2", "spine3"}) {
    if (std::string_view{spine} != "spine3") hops.set_usable(link_between(fabric, "leaf0", spine), false);
    if (std::string_view{spine} == "spine3") hops.set_usable(link_between(fabric, spine, "leaf1"), false);
  }
  hops.find({.device = device(fabric, "leaf0")}, 5, links);
  CHECK(links.empty());
  CHECK_FALSE(build_dag(hops, 0, 5).reaches());
  CHECK(build_dag(hops, 5, 0).reaches());  // both directions are links of their own
}

// leaf0 -> 4 spines -> 2 cores each -> spine of the other pod -> leaf: 4 + 8 + 8 + 4 links and two NIC links.
TEST_CASE("next hops: three tiers, failures at each") {
  const Fabric fabric = small("clos-3tier", 16);
  NextHops hops{fabric};
  std::vector<NextHops::Step> links;
  const std::uint32_t far = 12;  // node 12: pod 1, leaf3
  PathDag dag = build_dag(hops, 0, far);
  REQUIRE(dag.reaches());
  CHECK(dag.edges.size() == 4 + 8 + 8 + 4 + 2);
  double at_core = 0.0;
  for (const LinkShare& s : even_shares(dag)) {
    const Link& link = fabric.links[s.link.index()];
    if (fabric.devices[link.to.index()].kind == DeviceKind::kCore) {
      CHECK(s.share == 0.125);
      at_core += s.share;
    }
  }
  CHECK(at_core == 1.0);
  hops.find({.device = device(fabric, "core5")}, far, links);
  CHECK(names(fabric, links) == Names{"spine6"});  // core 5 is of plane 2: spine 4 + 2
  // Without spine6 -> leaf3 plane 2 leads nowhere, seen from leaf0 two tiers away.
  hops.set_usable(link_between(fabric, "spine6", "leaf3"), false);
  hops.find({.device = device(fabric, "leaf0")}, far, links);
  CHECK(names(fabric, links) == Names{"spine0", "spine1", "spine3"});
  // A core less in plane 0: half of spine0's traffic each way before, all of it on the other now.
  hops.set_usable(link_between(fabric, "core0", "spine4"), false);
  dag = build_dag(hops, 0, far);
  CHECK(dag.edges.size() == 3 + 5 + 5 + 3 + 2);
  for (const LinkShare& s : even_shares(dag)) {
    if (s.link == link_between(fabric, "spine0", "core1")) CHECK(s.share == doctest::Approx(1.0 / 3));
    if (s.link == link_between(fabric, "spine1", "core2")) CHECK(s.share == doctest::Approx(1.0 / 6));
  }
}

// Costs 5, 1, 3, 2 on the four up-links and 4 on spine1's way down: worst of the ways 5, 4, 3, 2.
TEST_CASE("next hops: the widest path") {
  const Fabric fabric = small("clos", 8);
  NextHops hops{fabric};
  const PathDag dag = build_dag(hops, 0, 5);
  const auto cost = [&](LinkId id) {
    const Link& link = fabric.links[id.index()];
    const Device& to = fabric.devices[link.to.index()];
    if (to.kind == DeviceKind::kSpine) return std::vector<double>{5, 1, 3, 2}[to.index];
    return id == link_between(fabric, "spine1", "leaf1") ? 4.0 : 0.0;
  };
  CHECK(names(fabric, widest_path(dag, cost)) == Names{"leaf0", "spine3", "leaf1", "node5/nic0"});
  CHECK(names(fabric, widest_path(dag, [](LinkId) { return 0.0; })) == Names{"leaf0", "spine0", "leaf1", "node5/nic0"});
}

TEST_SUITE_END();

}  // namespace stepcast::topology::test
