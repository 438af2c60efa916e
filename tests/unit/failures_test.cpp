// Names of links and switches that fail, and the errors for those that are none.
#include <doctest/doctest.h>

#include <string>

#include "sim/base/diagnostic.hpp"
#include "tests/support/topology_hardware.hpp"
#include "topologies/failures.hpp"
#include "topologies/link_slots.hpp"

namespace stepcast::topology::test {

namespace {

// Eight nodes of one NIC, four a leaf: 2 leaves, 4 spines.
Fabric two_leaves() {
  scenario::Cluster cluster = cluster_of(8, "clos");
  cluster.fabric->nics_per_node = 1;
  cluster.fabric->leaf_ports = 4;
  return build_fabric(nvswitch_box(), cluster);
}

scenario::Failure link(const std::string& name) { return {.link = name, .switch_name = {}, .at = {}, .fraction = 0.0}; }

std::string refusal(const scenario::Failure& failure) {
  const Fabric fabric = two_leaves();
  try {
    find_failures(fabric, {&failure, 1});
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_SUITE_BEGIN("unit");

TEST_CASE("failures: links by name, both ways or one, and switches with all their links") {
  const Fabric fabric = two_leaves();
  const auto count = [&](const scenario::Failure& failure) { return find_failures(fabric, {&failure, 1})[0].links.size(); };
  CHECK(count(link("leaf0 <-> spine3")) == 2);
  CHECK(count(link("leaf0 -> spine3")) == 1);
  CHECK(count(link("node2/nic0<->leaf0")) == 2);
  CHECK(count({.link = {}, .switch_name = "spine1", .at = {}, .fraction = 0.5}) == 4);   // two leaves, two ways
  CHECK(count({.link = {}, .switch_name = "leaf1", .at = {}, .fraction = 0.0}) == 16);   // four nodes, four spines
}

TEST_CASE("failures: in order of time") {
  const Fabric fabric = two_leaves();
  std::vector<scenario::Failure> list{link("leaf0 -> spine3"), link("leaf0 -> spine2"), link("leaf0 -> spine1")};
  list[0].at = Duration::microseconds(5000);
  list[2].at = Duration::microseconds(1000);
  list[2].fraction = 0.25;
  const std::vector<LinkChange> changes = find_failures(fabric, list);
  CHECK(changes[0].at == Duration{});
  CHECK(changes[1].fraction == 0.25);
  CHECK(changes[2].at == Duration::microseconds(5000));
}

TEST_CASE("failures: what is no link or switch is refused at its key") {
  CHECK(has(refusal(link("leaf0 - spine3")), "cluster.fabric.failures[0].link: not a link"));
  CHECK(has(refusal(link("leaf0 <-> spine9")), "did you mean 'spine0'"));
  CHECK(has(refusal(link("leaf0 <-> leaf1")), "no link joins these two"));
  CHECK(has(refusal({.link = {}, .switch_name = "node0/nic0", .at = {}, .fraction = 0.0}), "failures[0].switch: no such switch"));
  CHECK(has(refusal({}), "neither a link nor a switch"));
  CHECK(has(refusal({.link = "leaf0 -> spine3", .switch_name = "leaf0", .at = {}, .fraction = 0.0}), "both a link and a switch"));
}

TEST_CASE("link slots: bundles, or single links after them") {
  const Fabric fabric = two_leaves();
  const LinkSlots whole{fabric, false};
  CHECK(whole.size() == fabric.bundles.size());
  const LinkSlots single{fabric, true};
  CHECK(single.size() == fabric.bundles.size() + 4 * 4);  // two leaves, up and down bundles of four links
  const std::uint32_t up = *fabric.leaves[0].up;
  CHECK(single.name(up) == "leaf0 -> spine0 (x4)");
  const LinkId third = fabric.bundles[up].links[2];
  CHECK(single.name(single.of(third)) == "leaf0 -> spine2");
  CHECK(single.capacity(single.of(third)) == doctest::Approx(48e9));
  CHECK(single.capacity(up) == doctest::Approx(4 * 48e9));
  CHECK(single.of(fabric.bundles[fabric.ports[3].up].links[0]) == fabric.ports[3].up);
}

TEST_SUITE_END();

}  // namespace stepcast::topology::test
