// All-to-all by pairs, over PXN and in levels; unequal parts.
#include <doctest/doctest.h>

#include <map>

#include "models/collective/cost.hpp"
#include "models/collective/nccl_constants.hpp"

using namespace stepcast;
using namespace stepcast::collective;
using namespace stepcast::literals;
using plan::CollectiveKind;

TEST_SUITE_BEGIN("unit");

namespace {

using Pair = std::pair<std::uint32_t, std::uint32_t>;

std::vector<Member> hosts_of(std::uint32_t hosts, std::uint32_t local) {
  std::vector<Member> members;
  for (std::uint32_t i = 0; i < hosts * local; ++i) members.push_back({i, i / local});
  return members;
}

std::map<Pair, double> loads(Algorithm algorithm, const std::vector<Member>& members, const Volumes& volumes = {}) {
  std::map<Pair, double> load;
  for (const Edge& edge : edges_of(algorithm, members, {}, volumes)) load[{edge.from, edge.to}] += edge.share;
  return load;
}

double received(const std::map<Pair, double>& load, std::uint32_t gpu) {
  double sum = 0.0;
  for (const auto& [pair, share] : load) sum += pair.second == gpu ? share : 0.0;
  return sum;
}

}  // namespace

// Two hosts of two: GPU 0 sends a quarter to each. Its part for GPU 3 goes through GPU 1, and GPU 1's part for GPU 2 through
// it: half a buffer over NVLink, half over its rail to GPU 2, nothing from rail to rail.
TEST_CASE("collective: PXN keeps all-to-all on the receiver's rail") {
  const auto load = loads(Algorithm::kPxn, hosts_of(2, 2));
  CHECK(load == std::map<Pair, double>{{{0, 1}, 0.5}, {{0, 2}, 0.5}, {{1, 0}, 0.5}, {{1, 3}, 0.5}, {{2, 0}, 0.5}, {{2, 3}, 0.5}, {{3, 1}, 0.5}, {{3, 2}, 0.5}});
  // Of 128 hosts of 8, a GPU meets 7 others of its host and 127 of its rail, not 1,023.
  CHECK(loads(Algorithm::kPxn, hosts_of(16, 8)).size() == 128 * (7 + 15));
}

// Ranks 0 to 3 on two hosts: the message from 1 to 2 changes rails, by way of GPU 0.
TEST_CASE("collective: PXN of send and receive") {
  CHECK(loads(Algorithm::kPxnShift, hosts_of(2, 2)) ==
        std::map<Pair, double>{{{0, 1}, 1.0}, {{1, 0}, 1.0}, {{0, 2}, 1.0}, {{2, 3}, 1.0}, {{3, 2}, 1.0}, {{2, 0}, 1.0}});
}

// Weights 2, 1, 1 by receiver: each rank sends half of its bytes to rank 0, which gets them from two others: 1 S, against
// 2/3 S of even parts. By sender the loads are transposed. A matrix in bytes: only ratios count.
TEST_CASE("collective: volumes by receiver, by sender and by pair") {
  const auto members = hosts_of(1, 3);
  const plan::VolumeTable hot{.name = "hot", .form = plan::VolumeForm::kReceivers, .values = {2, 1, 1}};
  const auto dispatch = loads(Algorithm::kPairwise, members, {hot, 3});
  CHECK(received(dispatch, 0) == doctest::Approx(1.0));
  CHECK(received(dispatch, 1) == doctest::Approx(0.5));
  plan::VolumeTable combine = hot;
  combine.form = plan::VolumeForm::kSenders;
  const auto back = loads(Algorithm::kPairwise, members, {combine, 3});
  for (const auto& [pair, share] : dispatch) CHECK(back.at({pair.second, pair.first}) == doctest::Approx(share));
  // Rank 0 sends 10 B to rank 1 and 20 B to rank 2; 30 B in all, 10 a rank on average, so shares of 1 and 2.
  const plan::VolumeTable matrix{.name = "m", .form = plan::VolumeForm::kPairs, .values = {0, 10, 20, 0, 0, 0, 0, 0, 0}};
  CHECK(loads(Algorithm::kPairwise, members, {matrix, 3}) == std::map<Pair, double>{{{0, 1}, 1.0}, {{0, 2}, 2.0}});
  CHECK(plan::zipf(4, 1.0) == std::vector<double>{1.0, 1.0 / 2, 1.0 / 3, 1.0 / 4});
}

// What PXN carries is what pairs send, whatever the volumes: the same bytes arrive.
TEST_CASE("collective: PXN carries unequal parts") {
  const plan::VolumeTable hot{.name = "hot", .form = plan::VolumeForm::kReceivers, .values = {5, 1, 1, 1}};
  const auto load = loads(Algorithm::kPxn, hosts_of(2, 2), {hot, 4});
  CHECK(load.at({2, 0}) == doctest::Approx(2 * 5.0 / 8));           // both GPUs of host 1, over rail 0
  CHECK(load.at({3, 2}) == doctest::Approx(5.0 / 8 + 1.0 / 8));     // GPU 3's parts for GPUs 0 and 2
}

// Two hosts of four: a ring in each host carries 3/4 of the traffic, each rail an eighth; all-reduce is two rounds of S.
TEST_CASE("collective: hierarchical rings") {
  const auto load = loads(Algorithm::kHierarchical, hosts_of(2, 4));
  CHECK(load.at({0, 1}) == doctest::Approx(0.75));
  CHECK(load.at({0, 4}) == doctest::Approx(0.125));
  CHECK(traffic_bytes(CollectiveKind::kAllReduce, Algorithm::kHierarchical, 1_GB, 8) == doctest::Approx(2e9));
  // 3 * 8.4 + 2 (3 * 3.4 + 1 * 14) = 73.6 us.
  const Layout layout{.ranks = 8, .hosts = 2};
  CHECK(latency_of(CollectiveKind::kAllReduce, Algorithm::kHierarchical, Protocol::kSimple, layout, {}).seconds() == doctest::Approx(73.6e-6));
  // Levels that follow each other: 1 / (1/100 + 1/25) = 20 GB/s.
  const Cost cost = evaluate(CollectiveKind::kAllReduce, 1_GB, layout, Algorithm::kHierarchical, Protocol::kSimple, {25e9, 100e9, 25e9}, {});
  CHECK(cost.seconds == doctest::Approx(73.6e-6 + 2e9 / 20e9));
}

TEST_CASE("collective: who takes PXN, and what a wish means for all-to-all, send and receive") {
  const Layout cluster{.ranks = 16, .hosts = 2};
  const auto able = [&](CollectiveKind kind, const Layout& layout, std::optional<Algorithm> named = {}) { return candidates(kind, layout, {}, {.algorithm = named, .protocol = {}, .nccl = {}}); };
  CHECK(able(CollectiveKind::kAllToAll, cluster) == std::vector{Algorithm::kPxn});
  CHECK(able(CollectiveKind::kSendReceive, cluster) == std::vector{Algorithm::kPxnShift});
  CHECK(able(CollectiveKind::kAllToAll, cluster, Algorithm::kPairwise) == std::vector{Algorithm::kPairwise});
  CHECK(able(CollectiveKind::kSendReceive, cluster, Algorithm::kPairwise) == std::vector{Algorithm::kShift});
  CHECK(able(CollectiveKind::kAllToAll, cluster, Algorithm::kHierarchical) == std::vector{Algorithm::kTwoStep});
  CHECK(able(CollectiveKind::kAllReduce, cluster, Algorithm::kHierarchical) == std::vector{Algorithm::kHierarchical});
  Layout pcie = cluster;
  pcie.nvlink = false;
  CHECK(able(CollectiveKind::kAllToAll, pcie) == std::vector{Algorithm::kPairwise});
  CHECK(able(CollectiveKind::kAllToAll, {.ranks = 8, .hosts = 1}) == std::vector{Algorithm::kPairwise});
}

// 16 ranks on 2 hosts: without PXN a GPU posts 8 messages, the last 7 us after the first; with it one, and a hop more.
// 8.4 + 14 + 7 = 29.4 us; 8.4 + 14 + 3.4 = 25.8 us.
TEST_CASE("collective: PXN posts fewer messages") {
  const Layout layout{.ranks = 16, .hosts = 2};
  const auto us = [&](Algorithm a) { return latency_of(CollectiveKind::kAllToAll, a, Protocol::kSimple, layout, {}).seconds() * 1e6; };
  CHECK(us(Algorithm::kPairwise) == doctest::Approx(29.4));
  CHECK(us(Algorithm::kPxn) == doctest::Approx(25.8));
}

// NCCL's thresholds: Simple 512 threads * 64 B = 32 KiB a channel; LL128 640 * 8 = 5 KiB; ring LL 512 * 8 * 8 ranks = 32 KiB.
TEST_CASE("collective: small messages use fewer channels") {
  CHECK(channels_used(Algorithm::kRing, Protocol::kSimple, 128_KiB, 8, 16) == 4);
  CHECK(channels_used(Algorithm::kRing, Protocol::kSimple, 1_GiB, 8, 16) == 16);
  CHECK(channels_used(Algorithm::kRing, Protocol::kSimple, 8_B, 8, 16) == 1);
  CHECK(channels_used(Algorithm::kRing, Protocol::kLl128, 10_KiB, 8, 16) == 2);
  CHECK(channels_used(Algorithm::kRing, Protocol::kLl, 64_KiB, 8, 16) == 2);
  CHECK(channels_used(Algorithm::kTree, Protocol::kLl, 64_KiB, 8, 16) == 16);
}

// Volta over two hosts: 18.5 GB/s of bus bandwidth a channel, half of it tree traffic: 4 channels move 37 GB/s.
TEST_CASE("collective: trees per channel") {
  Parameters p = nccl_constants(Generation::kVolta);
  p.channels = 4;
  p.network.tree_efficiency = 1.0;
  const Cost cost = evaluate(CollectiveKind::kAllReduce, 1_GiB, {.ranks = 16, .hosts = 2}, Algorithm::kTree, Protocol::kSimple, {90e9, 90e9}, p);
  CHECK(*cost.choice.rate_cap == doctest::Approx(37e9));
}

TEST_SUITE_END();
