#include <doctest/doctest.h>

#include <algorithm>

#include "tests/support/topology_hardware.hpp"
#include "topologies/bisection.hpp"
#include "topologies/inventory.hpp"
#include "topologies/picture.hpp"

namespace stepcast::topology::test {

namespace {

std::size_t occurrences(const std::string& text, std::string_view word) {
  std::size_t count = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + word.size())) ++count;
  return count;
}

}  // namespace

TEST_SUITE_BEGIN("unit");

// 16 nodes packed four to a leaf at 4:1. Half of the NICs: 64 x 48 GB/s. Two leaves a half, each with
// 8 up-links of 48 GB/s: a quarter.
TEST_CASE("topology: bisection of an oversubscribed clos is its up-links") {
  scenario::Cluster cluster = cluster_of(16, "clos");
  cluster.fabric->oversubscription = 4.0;
  const std::optional<Bisection> cut = bisection(build_fabric(nvswitch_box(), cluster));
  REQUIRE(cut.has_value());
  CHECK(cut->nic_capacity.si() == doctest::Approx(64 * 48e9));
  CHECK(cut->capacity.si() == doctest::Approx(2 * 8 * 48e9));
  CHECK(cut->fraction() == doctest::Approx(0.25));
}

// In one rail pod every leaf holds both halves: nothing needs to climb, whatever the oversubscription.
TEST_CASE("topology: bisection within a rail pod needs no spine") {
  scenario::Cluster cluster = cluster_of(16, "rail-clos");
  cluster.fabric->oversubscription = 8.0;
  CHECK(bisection(build_fabric(nvswitch_box(), cluster))->fraction() == doctest::Approx(1.0));
  CHECK_FALSE(bisection(build_fabric(nvswitch_box(), cluster_of(1, "none"))).has_value());
}

// 2 nodes: 16 GPUs, 2 NVSwitches, 16 PCIe switches, 4 roots and memories, 16 NICs, 8 leaves of 2 ports
// with 2 up-links each, so 2 spines.
TEST_CASE("topology: the inventory counts devices and two-way links") {
  const Inventory inventory = take_inventory(build_fabric(nvswitch_box(), cluster_of(2, "rail-clos")));
  const auto devices = [&](DeviceKind kind) {
    for (const DeviceCount& row : inventory.devices)
      if (row.kind == kind) return row.count;
    return std::int64_t{0};
  };
  CHECK(devices(DeviceKind::kGpu) == 16);
  CHECK(devices(DeviceKind::kNvswitch) == 2);
  CHECK(devices(DeviceKind::kPcieSwitch) == 16);
  CHECK(devices(DeviceKind::kLeaf) == 8);
  CHECK(devices(DeviceKind::kSpine) == 2);
  CHECK(devices(DeviceKind::kCore) == 0);
  const auto link = std::find_if(inventory.links.begin(), inventory.links.end(), [](const LinkCount& row) { return row.to == DeviceKind::kSpine; });
  REQUIRE(link != inventory.links.end());
  CHECK(link->count == 16);
  CHECK(link->rate.si() == doctest::Approx(50e9));
  CHECK(inventory_text(inventory).find("16  network  leaf - spine") != std::string::npos);
}

TEST_CASE("topology: example paths show each kind once") {
  const Fabric fabric = build_fabric(nvswitch_box(), cluster_of(40, "rail-clos"));
  const std::vector<PathExample> examples = example_paths(fabric, Router{fabric});
  REQUIRE(examples.size() == 3);
  CHECK(examples[0].what == "same node");
  CHECK(examples[1].what == "same leaf");
  CHECK(examples[2].what == "across leaves");
  const std::string text = path_text(fabric, examples[2]);
  CHECK(text.find("leaf0 -> spine*") != std::string::npos);
  CHECK(text.find("3 switches") != std::string::npos);
  CHECK(text.find("node0/gpu0 -> node0/pcie0") < text.find("leaf0 -> spine*"));
  REQUIRE(text.find("spine* -> leaf") != std::string::npos);
  CHECK(text.find("leaf0 -> spine*") < text.find("spine* -> leaf"));
}

TEST_CASE("topology: the picture aggregates long rows and stays small") {
  const std::string few = draw_fabric(build_fabric(nvswitch_box(), cluster_of(4, "rail-clos")));
  CHECK(few.starts_with("<svg"));
  CHECK(few.find(">node3<") != std::string::npos);
  CHECK(occurrences(few, "class=\"gpu\"") == 8);
  const std::string many = draw_fabric(build_fabric(nvswitch_box(), cluster_of(2048, "rail-clos")));
  CHECK(many.find(">+2037<") != std::string::npos);
  CHECK(many.find(">+501<") != std::string::npos);
  CHECK(many.size() < 60'000);
  CHECK(many.find("Note: each spine switch would need 512 ports") != std::string::npos);
}

TEST_SUITE_END();

}  // namespace stepcast::topology::test
