#include <doctest/doctest.h>

#include <map>

#include "models/collective/cost.hpp"

using namespace stepcast;
using namespace stepcast::collective;
using namespace stepcast::literals;
using plan::CollectiveKind;

TEST_SUITE_BEGIN("unit");

namespace {

std::vector<Member> hosts_of(std::uint32_t hosts, std::uint32_t local) {
  std::vector<Member> members;
  for (std::uint32_t i = 0; i < hosts * local; ++i) members.push_back({i, i / local});
  return members;
}

double sent_by(const std::vector<Edge>& edges, std::uint32_t gpu) {
  double sum = 0.0;
  for (const Edge& edge : edges) sum += edge.from == gpu ? edge.share : 0.0;
  return sum;
}

}  // namespace

// One host: the plain ring 0-1-2-3-0, all of the traffic on every edge.
TEST_CASE("collective: a ring inside one host") {
  const std::vector<Edge> edges = edges_of(Algorithm::kRing, hosts_of(1, 4));
  REQUIRE(edges.size() == 4);
  for (std::uint32_t i = 0; i < 4; ++i) {
    CHECK(edges[i].from == i);
    CHECK(edges[i].to == (i + 1) % 4);
    CHECK(edges[i].share == 1.0);
  }
}

// Two hosts of four: four rings, each with a quarter of the data, cross the network at their own GPU.
TEST_CASE("collective: rings across hosts keep their rails") {
  const std::vector<Edge> edges = edges_of(Algorithm::kRing, hosts_of(2, 4));
  std::map<std::uint32_t, double> crossing;
  for (const Edge& edge : edges) {
    if (edge.from / 4 == edge.to / 4) continue;
    CHECK(edge.from % 4 == edge.to % 4);
    crossing[edge.from] += edge.share;
  }
  CHECK(crossing.size() == 8);
  for (const auto& [gpu, share] : crossing) CHECK(share == doctest::Approx(0.25));
}

// Double binary tree: what goes up comes down, and a host sends at most twice the data.
TEST_CASE("collective: trees send at most 2 S a host") {
  for (const std::uint32_t hosts : {2u, 3u, 4u, 7u, 16u}) {
    CAPTURE(hosts);
    const std::vector<Edge> edges = edges_of(Algorithm::kTree, hosts_of(hosts, 1));
    double total = 0.0;
    for (std::uint32_t host = 0; host < hosts; ++host) {
      CHECK(sent_by(edges, host) <= 2.0 + 1e-12);
      total += sent_by(edges, host);
    }
    // Two trees of hosts - 1 edges, half the data, both ways.
    CHECK(total == doctest::Approx(2.0 * (hosts - 1)));
  }
}

TEST_CASE("collective: all-to-all sends 1/n to each of the others") {
  const std::vector<Edge> edges = edges_of(Algorithm::kPairwise, hosts_of(2, 2));
  CHECK(edges.size() == 12);
  CHECK(sent_by(edges, 0) == doctest::Approx(0.75));
}

// nccl-tests: all-reduce busbw = algbw * 2 (n-1)/n, so the traffic of S bytes on 8 ranks is 1.75 S.
TEST_CASE("collective: traffic by nccl-tests' factors") {
  CHECK(traffic_bytes(CollectiveKind::kAllReduce, Algorithm::kRing, 8_GB, 8) == doctest::Approx(14e9));
  CHECK(traffic_bytes(CollectiveKind::kAllGather, Algorithm::kRing, 8_GB, 8) == doctest::Approx(7e9));
  CHECK(traffic_bytes(CollectiveKind::kReduceScatter, Algorithm::kRing, 8_GB, 8) == doctest::Approx(7e9));
  CHECK(traffic_bytes(CollectiveKind::kBroadcast, Algorithm::kRing, 8_GB, 8) == doctest::Approx(8e9));
}

// Ring, Simple, 16 ranks on 2 hosts, all-reduce: 30 steps, 2 of them over the network:
// 8.4 + 28 * max(3.4, 3 * 1.0) + 2 * 14 = 131.6 us.
TEST_CASE("collective: ring latency worked by hand") {
  const Layout layout{.ranks = 16, .hosts = 2, .nvlink = true};
  CHECK(latency_of(CollectiveKind::kAllReduce, Algorithm::kRing, Protocol::kSimple, layout, {}).seconds() ==
        doctest::Approx(131.6e-6));
}

// A ring at 360 GB/s; the tree's busiest edge carries twice the share, so it moves at half of that.
TEST_CASE("collective: small messages take LL, large ones Simple; long rings lose to trees when small") {
  const Layout node{.ranks = 8, .hosts = 1, .nvlink = true};
  CHECK(choose(CollectiveKind::kAllReduce, 4_KiB, node, 360e9, 360e9, std::nullopt, {}).protocol == Protocol::kLl);
  CHECK(choose(CollectiveKind::kAllReduce, 1_GiB, node, 360e9, 360e9, std::nullopt, {}).protocol == Protocol::kSimple);
  const Layout cluster{.ranks = 1024, .hosts = 128, .nvlink = true};
  CHECK(choose(CollectiveKind::kAllReduce, 1_MiB, cluster, 360e9, 180e9, std::nullopt, {}).algorithm == Algorithm::kTree);
  CHECK(choose(CollectiveKind::kAllReduce, 64_GiB, cluster, 360e9, 180e9, std::nullopt, {}).algorithm == Algorithm::kRing);
  CHECK(choose(CollectiveKind::kAllReduce, 1_MiB, cluster, 360e9, 180e9, Algorithm::kRing, {}).algorithm == Algorithm::kRing);
}

TEST_SUITE_END();
