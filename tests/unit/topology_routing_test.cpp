#include <doctest/doctest.h>

#include "tests/support/topology_hardware.hpp"
#include "topologies/routing.hpp"

namespace stepcast::topology::test {

TEST_SUITE_BEGIN("unit");

// GPU up to the NVSwitch and down again: two links, 1000 ns in all, one switch.
TEST_CASE("topology: GPUs of an NVSwitch box meet at the switch") {
  const Fabric fabric = build_fabric(nvswitch_box(), cluster_of(1, "none"));
  const Router router{fabric};
  const Path path = router.path(1, 6);
  CHECK(path.kind == PathKind::kNvlink);
  REQUIRE(path.shares.size() == 2);
  CHECK(share_of(fabric, path, "node0/gpu1 -> node0/nvswitch0") == 1.0);
  CHECK(share_of(fabric, path, "node0/nvswitch0 -> node0/gpu6") == 1.0);
  CHECK(path.latency == Duration::nanoseconds(1000));
  CHECK(path.switch_hops == 1);
  CHECK(fabric.bundles[path.shares[0].bundle].capacity.si() == doctest::Approx(450e9 * 0.8));
  CHECK(router.path(3, 3).kind == PathKind::kSelf);
  CHECK(router.path(3, 3).shares.empty());
}

// Same rail, two nodes of a pod: GPU -> PCIe switch -> NIC -> leaf -> NIC -> PCIe switch -> GPU.
// 4 PCIe links of 200 ns, 1000 ns NIC to NIC, one switch of 300 ns: 2100 ns.
TEST_CASE("topology: one rail crosses one leaf") {
  const Fabric fabric = build_fabric(nvswitch_box(), cluster_of(2, "rail-clos"));
  const Router router{fabric};
  const Path path = router.path(2, 8 + 2);
  CHECK(path.kind == PathKind::kNetwork);
  CHECK(path.shares.size() == 6);
  CHECK(share_of(fabric, path, "node0/gpu2 -> node0/pcie2") == 1.0);
  CHECK(share_of(fabric, path, "node0/pcie2 -> node0/nic2") == 1.0);
  CHECK(share_of(fabric, path, "node0/nic2 -> leaf2") == 1.0);
  CHECK(share_of(fabric, path, "leaf2 -> node1/nic2") == 1.0);
  CHECK(share_of(fabric, path, "node1/nic2 -> node1/pcie2") == 1.0);
  CHECK(share_of(fabric, path, "node1/pcie2 -> node1/gpu2") == 1.0);
  CHECK(path.latency == Duration::nanoseconds(2100));
  CHECK(path.switch_hops == 1);
}

// Another rail: up to the spines and down, two more switches of 300 ns.
TEST_CASE("topology: crossing rails climbs to the spines") {
  const Fabric fabric = build_fabric(nvswitch_box(), cluster_of(2, "rail-clos"));
  const Router router{fabric};
  const Path path = router.path(2, 8 + 5);
  CHECK(path.shares.size() == 8);
  CHECK(share_of(fabric, path, "leaf2 -> spine*") == 1.0);
  CHECK(share_of(fabric, path, "spine* -> leaf5") == 1.0);
  CHECK(path.latency == Duration::nanoseconds(2700));
  CHECK(path.switch_hops == 3);
}

// Through NIC 5: GPU 2 hands over to GPU 5 on NVLink (PXN), whose rail the data stay on; at the far end back.
TEST_CASE("topology: a chosen NIC is reached over NVLink") {
  const Fabric fabric = build_fabric(nvswitch_box(), cluster_of(2, "rail-clos"));
  const Router router{fabric};
  const Path path = router.path_through_nic(2, 8 + 2, 13);  // 13 % 8 = 5
  CHECK(share_of(fabric, path, "node0/gpu2 -> node0/nvswitch0") == 1.0);
  CHECK(share_of(fabric, path, "node0/nvswitch0 -> node0/gpu5") == 1.0);
  CHECK(share_of(fabric, path, "node0/gpu5 -> node0/pcie5") == 1.0);
  CHECK(share_of(fabric, path, "node0/nic5 -> leaf5") == 1.0);
  CHECK(share_of(fabric, path, "node1/nvswitch0 -> node1/gpu2") == 1.0);
  CHECK(path.switch_hops == 3);  // NVSwitch, leaf, NVSwitch
  CHECK(path.latency == Duration::nanoseconds(2100 + 2 * 1000));
}

// Rail-only: no spine joins rails, so the sender moves to the receiver's rail inside its host.
TEST_CASE("topology: rail-only changes rails inside the sending host") {
  const Fabric fabric = build_fabric(nvswitch_box(), cluster_of(2, "rail-only"));
  const Path path = Router{fabric}.path(2, 8 + 5);
  CHECK(share_of(fabric, path, "node0/nvswitch0 -> node0/gpu5") == 1.0);
  CHECK(share_of(fabric, path, "node0/nic5 -> leaf5") == 1.0);
  CHECK(share_of(fabric, path, "leaf5 -> node1/nic5") == 1.0);
  CHECK(share_of(fabric, path, "node1/pcie5 -> node1/gpu5") == 1.0);
}

// Two NICs a GPU: half of the traffic on each.
TEST_CASE("topology: a GPU with two NICs uses both evenly") {
  scenario::Cluster cluster = cluster_of(2, "rail-clos");
  cluster.fabric->nics_per_node = 16;
  const Fabric fabric = build_fabric(nvswitch_box(), cluster);
  const Path path = Router{fabric}.path(1, 8 + 1);
  CHECK(share_of(fabric, path, "node0/nic2 -> leaf2") == 0.5);
  CHECK(share_of(fabric, path, "node0/nic3 -> leaf3") == 0.5);
  CHECK(share_of(fabric, path, "node0/gpu1 -> node0/pcie1") == 1.0);
}

// PCIe box: within a switch two links; across sockets GPU, switch, root, root, switch, GPU.
TEST_CASE("topology: a PCIe box meets at switches and over the socket link") {
  const Fabric fabric = build_fabric(pcie_box(), cluster_of(1, "none"));
  const Router router{fabric};
  const Path near = router.path(0, 1);
  CHECK(near.kind == PathKind::kPcie);
  CHECK(near.shares.size() == 2);
  const Path far = router.path(0, 3);
  CHECK(far.shares.size() == 5);
  CHECK(share_of(fabric, far, "node0/root0 -> node0/root1") == 1.0);
  CHECK(far.latency == Duration::nanoseconds(4 * 200 + 100));
  CHECK(far.switch_hops == 0);
}

TEST_CASE("topology: without peer-to-peer PCIe traffic passes host memory") {
  ClusterHardware box = pcie_box();
  box.node.peer_to_peer = false;
  const Fabric fabric = build_fabric(box, cluster_of(1, "none"));
  const Path path = Router{fabric}.path(0, 1);
  CHECK(share_of(fabric, path, "node0/root0 -> node0/memory0") == 1.0);
  CHECK(share_of(fabric, path, "node0/memory0 -> node0/root0") == 1.0);
  CHECK(share_of(fabric, path, "node0/pcie0 -> node0/gpu1") == 1.0);
}

TEST_CASE("topology: TCP passes host memory at both ends") {
  ClusterHardware box = nvswitch_box();
  box.nic.transport = Transport::kTcp;
  const Fabric fabric = build_fabric(box, cluster_of(2, "clos"));
  const Path path = Router{fabric}.path(0, 8);
  CHECK(share_of(fabric, path, "node0/root0 -> node0/memory0") == 1.0);
  CHECK(share_of(fabric, path, "node1/memory0 -> node1/root0") == 1.0);
}

// DGX-1 wiring: 0-3 has two links, 0-1 one; 0-5 has none but two relays, 1 and 4.
TEST_CASE("topology: an NVLink mesh relays over one GPU") {
  ClusterHardware box = nvswitch_box();
  box.gpu.scale_up = gigabytes(150);
  box.node.interconnect = Interconnect::kNvlinkMesh;
  box.node.scale_up_efficiency = figure(1.0);
  box.node.mesh = {{0, 1, 1}, {0, 2, 1}, {0, 3, 2}, {0, 4, 2}, {1, 2, 2}, {1, 3, 1}, {1, 5, 2}, {2, 3, 2},
                   {2, 6, 1}, {3, 7, 1}, {4, 5, 1}, {4, 6, 1}, {4, 7, 2}, {5, 6, 2}, {5, 7, 1}, {6, 7, 2}};
  const Fabric fabric = build_fabric(box, cluster_of(1, "none"));
  const Router router{fabric};
  const Path direct = router.path(0, 3);
  REQUIRE(direct.shares.size() == 1);
  CHECK(fabric.bundles[direct.shares[0].bundle].capacity.si() == doctest::Approx(2 * 25e9));
  // 0 -> 5 by 1 (one link onward from 0) or 4 (two links): the three links carry a third each.
  const Path relayed = router.path(0, 5);
  CHECK(relayed.kind == PathKind::kNvlink);
  CHECK(share_of(fabric, relayed, "node0/gpu0 -> node0/gpu1") == doctest::Approx(1.0 / 3));
  CHECK(share_of(fabric, relayed, "node0/gpu0 -> node0/gpu4") == doctest::Approx(2.0 / 3));
  CHECK(share_of(fabric, relayed, "node0/gpu4 -> node0/gpu5") == doctest::Approx(2.0 / 3));
}

TEST_SUITE_END();

}  // namespace stepcast::topology::test
