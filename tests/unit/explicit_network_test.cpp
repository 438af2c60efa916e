// Networks written out: what they become, and every mistake by its key.
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

ClusterHardware one_nic_box() {
  ClusterHardware box = nvswitch_box();
  box.node.gpus = 1;
  box.gpus_per_node = 1;
  box.node.nics = 1;
  box.node.sockets = 1;
  return box;
}

scenario::Cluster written(std::int64_t nodes, scenario::Network network) {
  scenario::Cluster cluster = cluster_of(nodes, "rail-clos");
  cluster.fabric->network = std::move(network);
  return cluster;
}

// Two leaves of two hosts; spine0 with two links to each leaf, spine1 with one.
scenario::Network two_leaves() {
  return {.hosts = {"a[0-3]"},
          .switches = {"leaf[0-1]", "spine[0-1]"},
          .links = {{.from = "a[0-1]", .to = "leaf0"}, {.from = "leaf1", .to = "a[2-3]"},
                    {.from = "leaf[0-1]", .to = "spine0", .count = 2}, {.from = "leaf[0-1]", .to = "spine1"}}};
}

std::string refusal(std::int64_t nodes, const scenario::Network& network, const ClusterHardware& box = one_nic_box()) {
  try {
    build_fabric(box, written(nodes, network));
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}

bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_SUITE_BEGIN("unit");

// a0 to a2: three links up, two of them to spine0, so 2/3 and 1/3. One way: 200 + 200 ns PCIe at each end (GPU -
// switch - NIC), 500 ns to leaf0, 300 ns a switch, 500 + 300 ns from leaf1 to the NIC.
TEST_CASE("explicit network: traffic spreads over the links of shortest paths") {
  const Fabric fabric = build_fabric(one_nic_box(), written(4, two_leaves()));
  const Router router{fabric};
  const Path path = router.path(0, 2);
  CHECK(share_of(fabric, path, "leaf0 -> spine0") == doctest::Approx(2.0 / 3.0));
  CHECK(share_of(fabric, path, "spine1 -> leaf1") == doctest::Approx(1.0 / 3.0));
  CHECK(share_of(fabric, path, "a0/nic0 -> leaf0") == doctest::Approx(1.0));
  CHECK(path.latency == Duration::nanoseconds(4 * 200 + 500 + 300 + 300 + 800));
  CHECK(path.switch_hops == 3);
  const Path near = router.path(2, 3);
  CHECK(near.switch_hops == 1);
  CHECK(share_of(fabric, near, "leaf1 -> a3/nic0") == doctest::Approx(1.0));
  CHECK(bundle_name(fabric, fabric.ports[1].up) == "a1/nic0 -> leaf0");
}

// The first half sends 2 x 50 GB/s of its NICs; three links of a leaf would carry more; one would not.
TEST_CASE("explicit network: bisection by maximum flow") {
  const Fabric fabric = build_fabric(one_nic_box(), written(4, two_leaves()));
  CHECK(bisection(fabric)->capacity.si() == doctest::Approx(2 * 50e9 * 0.96));
  CHECK(bisection_by_max_flow(fabric).si() == doctest::Approx(bisection(fabric)->capacity.si()));
  scenario::Network thin = two_leaves();
  thin.links[2].count = 1;
  thin.links[2].rate = Bandwidth::from_si(20e9);
  thin.links[3].rate = Bandwidth::from_si(20e9);
  const Fabric narrow = build_fabric(one_nic_box(), written(4, thin));
  CHECK(bisection(narrow)->capacity.si() == doctest::Approx(2 * 20e9 * 0.96));
}

// Switches are named by their distance from a NIC: 2 leaves, 2 spines.
TEST_CASE("explicit network: inventory") {
  const Inventory inventory = take_inventory(build_fabric(one_nic_box(), written(4, two_leaves())));
  const auto count = [&](DeviceKind kind) {
    for (const DeviceCount& row : inventory.devices)
      if (row.kind == kind) return row.count;
    return std::int64_t{0};
  };
  CHECK(count(DeviceKind::kLeaf) == 2);
  CHECK(count(DeviceKind::kSpine) == 2);
  const auto up = std::find_if(inventory.links.begin(), inventory.links.end(), [](const LinkCount& row) { return row.to == DeviceKind::kSpine; });
  CHECK(up->count == 6);
}

// The walk over single links and the router agree.
TEST_CASE("explicit network: next hops spread as the router does") {
  const Fabric fabric = build_fabric(one_nic_box(), written(4, two_leaves()));
  NextHops hops{fabric};
  std::vector<double> by_bundle(fabric.bundles.size(), 0.0);
  for (const LinkShare& share : even_shares(build_dag(hops, 0, 2))) by_bundle[fabric.links[share.link.index()].bundle] += share.share;
  for (const Path::Share& share : Router{fabric}.path(0, 2).shares)
    if (fabric.links[fabric.bundles[share.bundle].links[0].index()].kind == LinkKind::kNetwork)
      CHECK(by_bundle[share.bundle] == doctest::Approx(share.share));
}

// Eight NICs, a switch for each rail and nothing between: rails change inside the sending host.
TEST_CASE("explicit network: rails of their own") {
  scenario::Network rails{.hosts = {}, .switches = {"rail[0-7]"}, .links = {}};
  for (int j = 0; j < 8; ++j) rails.links.push_back({.from = "node[0-1]/nic" + std::to_string(j), .to = "rail" + std::to_string(j)});
  const Fabric fabric = build_fabric(nvswitch_box(), written(2, rails));
  const Path path = Router{fabric}.path(0, 8 + 5);
  CHECK(share_of(fabric, path, "node0/nic5 -> rail5") == doctest::Approx(1.0));
  CHECK(share_of(fabric, path, "node0/gpu0 -> node0/nvswitch0") == doctest::Approx(1.0));
  CHECK(fabric.groups.size() == 8);
}

TEST_CASE("explicit network: mistakes name the key") {
  scenario::Network network = two_leaves();
  network.links[0].to = "leaf9";
  CHECK(says(refusal(4, network), "cluster.fabric.network.links[0].to: no such host or switch"));
  CHECK(says(refusal(4, network), "did you mean 'leaf0'?"));
  network = two_leaves();
  network.links[3] = {.from = "spine0", .to = "leaf1"};
  CHECK(says(refusal(4, network), "spine0 and leaf1 are joined twice"));
  CHECK(says(refusal(4, network), "first: cluster.fabric.network.links[2]"));
  network = two_leaves();
  network.links[0].from = "a0";
  CHECK(says(refusal(4, network), "joined with no switch"));
  CHECK(says(refusal(4, network), "a1/nic0"));
  network.links[0].from = "a[0-2]";
  CHECK(says(refusal(4, network), "a2/nic0 is joined twice"));
  network = two_leaves();
  network.links.resize(2);
  CHECK(says(refusal(4, network), "hosts do not reach each other"));
  CHECK(says(refusal(4, network), "a0/nic0 on leaf0 and a2/nic0 on leaf1"));
  CHECK(says(refusal(5, two_leaves()), "the hosts are not the nodes"));
  network = two_leaves();
  network.switches.push_back("leaf1");
  CHECK(says(refusal(4, network), "switches[2]: a second 'leaf1'"));
  network = two_leaves();
  network.links.push_back({.from = "a0", .to = "a1"});
  CHECK(says(refusal(4, network), "two hosts joined without a switch"));
  network = two_leaves();
  network.links.push_back({.from = "spine0", .to = "spine[0-1]"});
  CHECK(says(refusal(4, network), "a switch joined with itself"));
  network = two_leaves();
  network.links[0].from = "a[0-1";
  CHECK(says(refusal(4, network), "links[0].from: '[' without ']'"));
  network.links[0].from = "a[0-1]/nic1";
  CHECK(says(refusal(4, network), "no such network card"));
}

TEST_SUITE_END();

}  // namespace stepcast::topology::test
