// Fat trees of packet recordings: links, names, paths; and what is refused, where.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "sim/base/diagnostic.hpp"
#include "topologies/htsim_topology.hpp"

using namespace stepcast;
using namespace stepcast::topology;

namespace {

// Two pods of two ToRs of two hosts; two aggregation switches a pod, each with two cores: 4 cores.
const std::string kThreeTiers =
    "Nodes 8\nTiers 3\nPodsize 4\n\n"
    "Tier 0\nDownlink_speed_Gbps 400\nRadix_Down 2\nRadix_Up 2\nDownlink_Latency_ns 1000\nSwitch_Latency_ns 0\n\n"
    "Tier 1\nDownlink_speed_Gbps 200\nRadix_Down 2\nRadix_Up 2\nDownlink_Latency_ns 500\nSwitch_Latency_ns 100\nBundle 1\n\n"
    "Tier 2\nDownlink_speed_Gbps 100\nRadix_Down 2\nDownlink_Latency_ns 2000\nSwitch_Latency_ns 300\nBundle 1\n";

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const std::size_t at = text.find(what);
  REQUIRE(at != std::string::npos);
  return text.replace(at, what.size(), by);
}

std::string refusal(const std::string& text) {
  try {
    parse_htsim_topology(text, "t.topo");
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_SUITE_BEGIN("unit");

TEST_CASE("htsim topology: a tier's link figures are those below it") {
  const HtsimFabric fabric{parse_htsim_topology(kThreeTiers, "t.topo")};
  // 8 hosts, 4 ToRs x 2, 4 aggregation switches x 2: 8 + 8 + 8 cables, two directed links each.
  CHECK(fabric.links().size() == 48);
  const HtsimLink up = fabric.links()[fabric.host_up(5)];
  CHECK(up.rate.si() == 50e9);
  CHECK(up.from == 5);
  CHECK(up.to == 8 + 2);
  const HtsimLink core = fabric.links()[fabric.find("CS3->US1(0)").value()];
  CHECK(core.rate.si() == 12.5e9);
  CHECK(core.latency == Duration::nanoseconds(2300));  // 2000 of the wire, 300 of the core that it leaves
  CHECK(fabric.links()[fabric.find("US1->LS_1(0)").value()].latency == Duration::nanoseconds(600));
}

TEST_CASE("htsim topology: core c meets aggregation switch c mod 2 of each pod") {
  const HtsimFabric fabric{parse_htsim_topology(kThreeTiers, "t.topo")};
  CHECK(fabric.find("US2->CS0(0)"));
  CHECK(fabric.find("US2->CS2(0)"));
  CHECK_FALSE(fabric.find("US2->CS1(0)"));
  CHECK(fabric.find("US3->CS1(0)"));
  CHECK_FALSE(fabric.find("LS0->US2(0)"));  // another pod
  CHECK_FALSE(fabric.find("LS0->US0(1)"));  // no second link of the bundle
}

TEST_CASE("htsim topology: equal-cost paths join up, and there are as many as there should be") {
  const HtsimFabric fabric{parse_htsim_topology(kThreeTiers, "t.topo")};
  const auto check = [&](std::uint32_t from, std::uint32_t to, std::uint32_t paths, std::size_t links) {
    REQUIRE(fabric.path_count(from, to) == paths);
    std::vector<HtsimFabric::Path> found;
    for (std::uint32_t number = 0; number < paths; ++number) found.push_back(fabric.path(from, to, number));
    for (const HtsimFabric::Path& path : found) {
      CHECK(path.size() == links);
      CHECK(fabric.links()[path.front()].from == from);
      CHECK(fabric.links()[path.back()].to == to);
      for (std::size_t i = 1; i < path.size(); ++i) CHECK(fabric.links()[path[i - 1]].to == fabric.links()[path[i]].from);
    }
    std::sort(found.begin(), found.end());
    CHECK(std::unique(found.begin(), found.end()) == found.end());
  };
  check(0, 1, 1, 2);
  check(0, 2, 2, 4);
  check(0, 7, 4, 6);
}

TEST_CASE("htsim topology: what is wrong is named with its place") {
  CHECK(refusal(kThreeTiers).empty());
  CHECK(refusal(replaced(kThreeTiers, "Podsize", "Podsiez")).find("t.topo:3:1: error: Podsiez: unknown key") == 0);
  CHECK(refusal(replaced(kThreeTiers, "Radix_Up 2", "Radix_Up two")).find("t.topo:8:10: error: Radix_Up: not a number") == 0);
  CHECK(refusal(replaced(kThreeTiers, "Nodes 8\n", "")).find("Nodes: missing") != std::string::npos);
  CHECK(refusal(replaced(kThreeTiers, "Nodes 8", "Nodes 8\nNodes 8")).find("t.topo:2:7: error: Nodes: given twice") == 0);
  CHECK(refusal(replaced(kThreeTiers, "Nodes 8", "Nodes 9")).find("not a multiple of Podsize") != std::string::npos);
  CHECK(refusal(replaced(kThreeTiers, "Tier 1", "Tier 2")).find("tiers are out of order") != std::string::npos);
  CHECK(refusal(replaced(kThreeTiers, "Tiers 3", "Tiers 2")).find("blocks of tiers follow") != std::string::npos);
  CHECK(refusal(replaced(kThreeTiers, "Gbps 200", "Gbps 0")).find("out of range") != std::string::npos);
  // The cores must meet both pods.
  CHECK(refusal(replaced(kThreeTiers, "Gbps 100\nRadix_Down 2", "Gbps 100\nRadix_Down 3")).find("does not meet every pod") != std::string::npos);
}

TEST_SUITE_END();
