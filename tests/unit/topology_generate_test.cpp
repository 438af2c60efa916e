#include <doctest/doctest.h>

#include <algorithm>

#include "sim/base/diagnostic.hpp"
#include "tests/support/topology_hardware.hpp"

namespace stepcast::topology::test {

namespace {

std::int64_t count(const Fabric& fabric, DeviceKind kind) {
  return std::count_if(fabric.devices.begin(), fabric.devices.end(), [&](const Device& d) { return d.kind == kind; });
}

std::string refusal(const scenario::Cluster& cluster) {
  try {
    build_fabric(nvswitch_box(), cluster);
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_SUITE_BEGIN("unit");

// 32 nodes fill a pod: 8 leaves of 32 ports; 32 up-links at 4:1 become 8, so 8 spines.
// A leaf's up bundle: 8 links of 50 GB/s at 96 %.
TEST_CASE("topology: an oversubscribed leaf has a quarter of its capacity upwards") {
  scenario::Cluster cluster = cluster_of(32, "rail-clos");
  cluster.fabric->oversubscription = 4.0;
  const Fabric fabric = build_fabric(nvswitch_box(), cluster);
  CHECK(count(fabric, DeviceKind::kLeaf) == 8);
  CHECK(count(fabric, DeviceKind::kSpine) == 8);
  CHECK(fabric.bundles[*fabric.leaves[0].up].capacity.si() == doctest::Approx(8 * 50e9 * 0.96));
  CHECK(fabric.bundles[*fabric.leaves[0].down].links.size() == 8);
}

// 3:1 of 32 is 10.67: eleven links whose sum is 32 / 3 of a port.
TEST_CASE("topology: an odd oversubscription is met exactly") {
  scenario::Cluster cluster = cluster_of(32, "rail-clos");
  cluster.fabric->oversubscription = 3.0;
  const Fabric fabric = build_fabric(nvswitch_box(), cluster);
  CHECK(fabric.bundles[*fabric.leaves[0].up].links.size() == 11);
  CHECK(fabric.bundles[*fabric.leaves[0].up].capacity.si() == doctest::Approx(32.0 / 3.0 * 50e9 * 0.96));
}

// clos: 32 ports take 4 nodes of 8 NICs, so 16 nodes are 4 leaves; all NICs of a node on one.
TEST_CASE("topology: a packed leaf holds whole nodes") {
  const Fabric fabric = build_fabric(nvswitch_box(), cluster_of(16, "clos"));
  CHECK(count(fabric, DeviceKind::kLeaf) == 4);
  CHECK(count(fabric, DeviceKind::kSpine) == 32);
  for (std::size_t nic = 0; nic < 8; ++nic) CHECK(fabric.ports[5 * 8 + nic].leaf == 1);
}

// 8 nodes in pods of 4 (packed, one leaf each): 2 pods, 32 spines each, 32 cores for one leaf's worth.
TEST_CASE("topology: three tiers join pods by cores") {
  scenario::Cluster cluster = cluster_of(8, "clos-3tier");
  cluster.fabric->nodes_per_pod = 4;
  cluster.fabric->core_oversubscription = 2.0;
  const Fabric fabric = build_fabric(nvswitch_box(), cluster);
  CHECK(fabric.groups.size() == 2);
  CHECK(count(fabric, DeviceKind::kSpine) == 64);
  CHECK(count(fabric, DeviceKind::kCore) == 32);
  CHECK(fabric.bundles[*fabric.groups[0].up].capacity.si() == doctest::Approx(0.5 * 32 * 50e9 * 0.96));
}

TEST_CASE("topology: one leaf needs no spine, one node no network") {
  CHECK(count(build_fabric(nvswitch_box(), cluster_of(2, "clos")), DeviceKind::kSpine) == 0);
  const Fabric single = build_fabric(nvswitch_box(), cluster_of(1, "rail-clos"));
  CHECK(single.ports.empty());
  CHECK(count(single, DeviceKind::kLeaf) == 0);
}

// One NIC for eight GPUs sits beside GPU 0; four GPUs of the box used: their own NICs only.
TEST_CASE("topology: NICs go with the GPU slots they serve") {
  scenario::Cluster cluster = cluster_of(2, "clos");
  cluster.fabric->nics_per_node = 2;
  const Fabric two = build_fabric(nvswitch_box(), cluster);
  CHECK(two.networks[0].nics_of_gpu[3] == std::vector<std::uint32_t>{0});
  CHECK(two.networks[0].nics_of_gpu[4] == std::vector<std::uint32_t>{1});
  CHECK(two.host.gpu_of_nic[1] == 4);
  ClusterHardware half = nvswitch_box();
  half.gpus_per_node = 4;
  const Fabric fabric = build_fabric(half, cluster_of(2, "rail-clos"));
  CHECK(fabric.gpus.size() == 8);
  CHECK(fabric.networks[0].nics_of_gpu[3] == std::vector<std::uint32_t>{3});
  CHECK_FALSE(fabric.host.gpu_of_nic[5].has_value());
}

TEST_CASE("topology: impossible clusters are refused with the key") {
  scenario::Cluster cluster = cluster_of(2, "rail-clso");
  CHECK(refusal(cluster).find("cluster.fabric.preset") != std::string::npos);
  CHECK(refusal(cluster).find("did you mean 'rail-clos'?") != std::string::npos);
  cluster = cluster_of(2, "rail-clos");
  cluster.fabric.reset();
  CHECK(refusal(cluster).find("2 nodes without a network") != std::string::npos);
  cluster = cluster_of(2, "rail-clos");
  cluster.fabric->oversubscription = 0.0;
  CHECK(refusal(cluster).find("cluster.fabric.oversubscription") != std::string::npos);
  cluster = cluster_of(2, "clos");
  cluster.fabric->leaf_ports = 4;
  CHECK(refusal(cluster).find("NICs of one node") != std::string::npos);
  cluster.fabric->leaf_ports.reset();
  cluster.fabric->nodes_per_pod = 2;
  CHECK(refusal(cluster).find("has no pods") != std::string::npos);
  cluster = cluster_of(64, "rail-clos");
  cluster.fabric->nodes_per_pod = 64;
  CHECK(refusal(cluster).find("more nodes than a rail's leaf has ports") != std::string::npos);
  cluster = cluster_of(0, "rail-clos");
  CHECK(refusal(cluster).find("cluster.nodes") != std::string::npos);
}

TEST_SUITE_END();

}  // namespace stepcast::topology::test
