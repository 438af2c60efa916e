// Torus, mesh, dragonfly, boxes joined card to card, and two planes: counts, bisections and shares worked by hand.
#include <doctest/doctest.h>

#include <algorithm>

#include "sim/base/diagnostic.hpp"
#include "tests/support/topology_hardware.hpp"
#include "topologies/bisection.hpp"
#include "topologies/inventory.hpp"
#include "topologies/next_hops.hpp"
#include "topologies/path_dag.hpp"
#include "topologies/routing.hpp"

namespace stepcast::topology::test {
namespace {

ClusterHardware box_of(std::int64_t gpus, std::int64_t nics) {
  ClusterHardware box = nvswitch_box();
  box.node.gpus = gpus;
  box.gpus_per_node = gpus;
  box.node.nics = nics;
  box.node.sockets = 1;
  return box;
}

std::int64_t count(const Fabric& fabric, DeviceKind kind) {
  return std::count_if(fabric.devices.begin(), fabric.devices.end(), [&](const Device& d) { return d.kind == kind; });
}

std::int64_t cables(const Fabric& fabric, DeviceKind from, DeviceKind to) {
  for (const LinkCount& row : take_inventory(fabric).links)
    if (row.from == from && row.to == to) return row.count;
  return 0;
}

std::string refusal(const ClusterHardware& box, const scenario::Cluster& cluster) {
  try {
    build_fabric(box, cluster);
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}

bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

scenario::Cluster grid(const char* preset, std::vector<std::int64_t> shape, std::int64_t nodes) {
  scenario::Cluster cluster = cluster_of(nodes, preset);
  cluster.fabric->shape = std::move(shape);
  return cluster;
}

constexpr double kPort = 50e9 * 0.96;

// Both ways to shares: over bundles (router) and over single links (next hops).
void check_next_hops(const Fabric& fabric, std::uint32_t from, std::uint32_t to) {
  NextHops hops{fabric};
  std::vector<double> by_bundle(fabric.bundles.size(), 0.0);
  const Router router{fabric};
  for (const auto& way : router.crossing(from, to).ways)
    for (const LinkShare& share : even_shares(build_dag(hops, way.from_port, way.to_port)))
      by_bundle[fabric.links[share.link.index()].bundle] += way.weight * share.share;
  for (const Path::Share& share : router.path(from, to).shares)
    if (fabric.links[fabric.bundles[share.bundle].links[0].index()].kind == LinkKind::kNetwork) CHECK(by_bundle[share.bundle] == doctest::Approx(share.share));
}

}  // namespace

TEST_SUITE_BEGIN("unit");

// 4 x 4 torus, one host a switch: 2 cables a switch = 32. From (0,0) to (1,1): two shortest paths, half each.
// To (2,0): both ways around, half each. Cut between rows 0-1 and 2-3: 4 columns x 2 cables, 8 hosts send 8 ports.
TEST_CASE("torus: two dimensions") {
  const Fabric fabric = build_fabric(box_of(1, 1), grid("torus", {4, 4}, 16));
  CHECK(count(fabric, DeviceKind::kLeaf) == 16);
  CHECK(cables(fabric, DeviceKind::kLeaf, DeviceKind::kLeaf) == 32);
  const Router router{fabric};
  const Path corner = router.path(0, 5);
  CHECK(share_of(fabric, corner, "sw0.0 -> sw0.1") == doctest::Approx(0.5));
  CHECK(share_of(fabric, corner, "sw0.0 -> sw1.0") == doctest::Approx(0.5));
  CHECK(share_of(fabric, corner, "sw1.0 -> sw1.1") == doctest::Approx(0.5));
  CHECK(corner.switch_hops == 3);
  const Path round = router.path(0, 8);
  CHECK(share_of(fabric, round, "sw0.0 -> sw1.0") == doctest::Approx(0.5));
  CHECK(share_of(fabric, round, "sw0.0 -> sw3.0") == doctest::Approx(0.5));
  // 200 + 200 PCIe, 500 to the switch, 300 for each of two hops, 800 to the NIC, 200 + 200.
  CHECK(round.latency == Duration::nanoseconds(400 + 500 + 600 + 800 + 400));
  CHECK(bisection(fabric)->capacity.si() == doctest::Approx(8 * kPort));
  check_next_hops(fabric, 0, 10);
}

// The same grid without the way around: 24 cables; the cut has 4 of them.
TEST_CASE("mesh: two dimensions") {
  const Fabric fabric = build_fabric(box_of(1, 1), grid("mesh", {4, 4}, 16));
  CHECK(cables(fabric, DeviceKind::kLeaf, DeviceKind::kLeaf) == 24);
  CHECK(bisection(fabric)->capacity.si() == doctest::Approx(4 * kPort));
  CHECK(Router{fabric}.path(0, 15).switch_hops == 7);
}

// 2 x 3 x 4: 24 switches. Dimension of two: 12 cables; of three and four: 24 each. Two hosts a switch, three
// parallel links. (0,0,0) to (1,1,1) has 3! orders: a third on each first cable, a sixth on each middle one.
TEST_CASE("torus: three dimensions") {
  scenario::Cluster cluster = grid("torus", {2, 3, 4}, 48);
  cluster.fabric->nodes_per_switch = 2;
  cluster.fabric->neighbour_links = 3;
  const Fabric fabric = build_fabric(box_of(1, 1), cluster);
  CHECK(count(fabric, DeviceKind::kLeaf) == 24);
  CHECK(cables(fabric, DeviceKind::kLeaf, DeviceKind::kLeaf) == 3 * (12 + 24 + 24));
  const Path path = Router{fabric}.path(0, 2 * (12 + 4 + 1));
  CHECK(share_of(fabric, path, "sw0.0.0 -> sw1.0.0") == doctest::Approx(1.0 / 3.0));
  CHECK(share_of(fabric, path, "sw1.0.0 -> sw1.1.0") == doctest::Approx(1.0 / 6.0));
  CHECK(share_of(fabric, path, "sw1.0.1 -> sw1.1.1") == doctest::Approx(1.0 / 3.0));
  // The cut through the dimension of two: 12 x 3 links for 24 hosts.
  CHECK(bisection(fabric)->capacity.si() == doctest::Approx(24 * kPort));
  check_next_hops(fabric, 1, 2 * (12 + 4 + 1));
}

// Three groups of two switches, one host each, one link between two groups. Two global links a group: one on each
// switch. Group 0: switch 0 to group 1, switch 1 to group 2; group 1: switch 0 to group 0, switch 1 to group 2;
// group 2: switch 0 to group 0, switch 1 to group 1.
TEST_CASE("dragonfly: groups and global links") {
  scenario::Cluster cluster = cluster_of(6, "dragonfly");
  cluster.fabric->switches_per_group = 2;
  cluster.fabric->global_links = 1;
  const Fabric fabric = build_fabric(box_of(1, 1), cluster);
  CHECK(cables(fabric, DeviceKind::kLeaf, DeviceKind::kLeaf) == 3 + 3);
  const Router router{fabric};
  const Path path = router.path(0, 5);  // group0.sw0 to group2.sw1
  CHECK(share_of(fabric, path, "group0.sw1 -> group2.sw0") + share_of(fabric, path, "group1.sw1 -> group2.sw1") == doctest::Approx(1.0));
  CHECK(path.switch_hops == 4);
  CHECK(share_of(fabric, router.path(1, 4), "group0.sw1 -> group2.sw0") == doctest::Approx(1.0));
  CHECK(router.path(1, 4).switch_hops == 2);
  // Groups 0 and half of 1 to the rest: hosts 0, 1, 2 send 3 ports; the cut has 0.1-2.0, 1.0-1.1 and 0.0's none: 2.
  CHECK(bisection(fabric)->capacity.si() == doctest::Approx(2 * kPort));
  check_next_hops(fabric, 0, 5);
}

// By default a group has as many global links as NICs: 2 switches x 1 host x 2 NICs = 4, over 2 other groups: 2 each.
TEST_CASE("dragonfly: the default gives a group its NICs' worth of global links") {
  scenario::Cluster cluster = cluster_of(6, "dragonfly");
  cluster.fabric->switches_per_group = 2;
  const Fabric fabric = build_fabric(box_of(2, 2), cluster);
  // 3 pairs of groups x 2, and 3 groups x 1 pair x 2 neighbour links (the NICs of a switch).
  CHECK(cables(fabric, DeviceKind::kLeaf, DeviceKind::kLeaf) == 6 + 6);
}

// Three boxes of two cards: cables 0-1, 0-2, 1-2, each card used once. Data for the box on the other card cross
// inside the host; there is no switch on the way, 500 + 500 ns from card to card.
TEST_CASE("direct: boxes joined card to card") {
  const Fabric fabric = build_fabric(box_of(2, 2), cluster_of(3, "direct"));
  CHECK(count(fabric, DeviceKind::kCable) == 3);
  CHECK(count(fabric, DeviceKind::kLeaf) == 0);
  const Router router{fabric};
  const Path near = router.path(0, 2);
  CHECK(share_of(fabric, near, "node0/nic0 -> cable0") == doctest::Approx(1.0));
  CHECK(near.switch_hops == 0);
  CHECK(near.latency == Duration::nanoseconds(400 + 500 + 500 + 400));
  const Path other = router.path(0, 4);  // node2 by cable1: card 1 of node0 to card 0 of node2
  CHECK(share_of(fabric, other, "node0/nic1 -> cable1") == doctest::Approx(1.0));
  CHECK(share_of(fabric, other, "cable1 -> node2/nic0") == doctest::Approx(1.0));
  CHECK(share_of(fabric, other, "node0/gpu0 -> node0/nvswitch0") == doctest::Approx(1.0));
  check_next_hops(fabric, 0, 4);
  // Cards 0 of nodes 0 and 2 do not meet: the cable that there is, whichever card is asked for.
  CHECK(share_of(fabric, router.path_through_nic(0, 4, 0), "cable1 -> node2/nic0") == doctest::Approx(1.0));
  CHECK(share_of(fabric, router.path_through_nic(0, 2, 0), "cable0 -> node1/nic0") == doctest::Approx(1.0));
  // Box 0 to the other two: both its cards.
  CHECK(bisection(fabric)->capacity.si() == doctest::Approx(2 * kPort));
  CHECK(says(refusal(box_of(2, 2), cluster_of(4, "direct")), "a multiple of 3"));
}

// Four hosts of two cards: two leaves for each plane of a rail and pod, ports of half the rate; every GPU has both
// planes; spines join leaves of one plane only. Leaf: 2 x 25 GB/s down in pods of two hosts, so 2 spines a plane.
TEST_CASE("dual-plane: each card has a port on either plane") {
  scenario::Cluster cluster = cluster_of(4, "dual-plane");
  cluster.fabric->nodes_per_pod = 2;
  const Fabric fabric = build_fabric(box_of(2, 2), cluster);
  CHECK(count(fabric, DeviceKind::kNic) == 4 * 2 * 2);
  CHECK(count(fabric, DeviceKind::kLeaf) == 2 * 2 * 2);
  CHECK(count(fabric, DeviceKind::kSpine) == 2 * 2);
  CHECK(fabric.groups.size() == 2);
  const Path path = Router{fabric}.path(0, 5);  // GPU 1 of node 2: another rail and pod
  CHECK(share_of(fabric, path, "node0/nic0p0 -> leaf0") == doctest::Approx(0.5));
  CHECK(share_of(fabric, path, "node0/nic0p1 -> leaf1") == doctest::Approx(0.5));
  for (const Path::Share& share : path.shares) {
    const Link& link = fabric.links[fabric.bundles[share.bundle].links[0].index()];
    if (link.kind == LinkKind::kNetwork) CHECK(share.share == doctest::Approx(0.5));
    if (link.kind == LinkKind::kNetwork && fabric.devices[link.from.index()].kind == DeviceKind::kNic) CHECK(link.rate.si() == doctest::Approx(25e9));
  }
  CHECK(bisection(fabric)->fraction() == doctest::Approx(1.0));
  CHECK(bisection(fabric)->capacity.si() == doctest::Approx(2 * 2 * kPort));
  CHECK(bisection_by_max_flow(fabric).si() == doctest::Approx(bisection(fabric)->capacity.si()));
}

// Racks of two hosts of eight: 16 ports, 16 up-links; zones of four hosts (two racks), 7:1 between them.
// The first zone sends 32 ports; 32 / 7 of them reach the other.
TEST_CASE("meta-rack: racks of sixteen GPUs, zones of full bisection, 7:1 between zones") {
  scenario::Cluster cluster = cluster_of(8, "meta-rack");
  cluster.fabric->nodes_per_pod = 4;
  const Fabric fabric = build_fabric(nvswitch_box(), cluster);
  CHECK(count(fabric, DeviceKind::kLeaf) == 4);
  CHECK(count(fabric, DeviceKind::kSpine) == 2 * 16);
  CHECK(fabric.bundles[*fabric.leaves[0].up].capacity.si() == doctest::Approx(16 * kPort));
  CHECK(bisection(fabric)->fraction() == doctest::Approx(1.0 / 7.0));
  cluster.fabric->oversubscription = 0.5;  // twice the up-links
  CHECK(count(build_fabric(nvswitch_box(), cluster), DeviceKind::kSpine) == 2 * 32);
  // Zones of 192 racks unless said otherwise: 384 hosts are one, and 385 two.
  cluster = cluster_of(384, "meta-rack");
  CHECK(build_fabric(nvswitch_box(), cluster).groups.size() == 1);
  cluster.nodes = 385;
  CHECK(build_fabric(nvswitch_box(), cluster).groups.size() == 2);
}

TEST_CASE("direct networks: impossible shapes are refused with the key") {
  CHECK(says(refusal(box_of(1, 1), grid("torus", {4, 4}, 15)), "cluster.fabric.shape: not the number of nodes"));
  CHECK(says(refusal(box_of(1, 1), grid("torus", {}, 16)), "cluster.fabric.shape: missing key"));
  scenario::Cluster cluster = cluster_of(7, "dragonfly");
  CHECK(says(refusal(box_of(1, 1), cluster), "cluster.fabric.switches_per_group: missing key"));
  cluster.fabric->switches_per_group = 2;
  CHECK(says(refusal(box_of(1, 1), cluster), "cluster.nodes: no whole number of groups"));
}

TEST_SUITE_END();

}  // namespace stepcast::topology::test
