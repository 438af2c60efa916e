// What a release of NCCL has, and how those before 2.5 chose. Limits worked by hand from the formulas of nccl_releases.hpp.
#include <doctest/doctest.h>

#include <limits>

#include "models/collective/nccl_releases.hpp"

using namespace stepcast;
using namespace stepcast::collective;
using namespace stepcast::literals;
using plan::CollectiveKind;

TEST_SUITE_BEGIN("unit");

namespace {

Forced release(std::int32_t minor) { return {.algorithm = {}, .protocol = {}, .nccl = minor}; }

}  // namespace

TEST_CASE("nccl releases: algorithms come with theirs") {
  const Layout cluster{.ranks = 16, .hosts = 2, .nvlink = true, .nvswitch = true};
  const Layout box{.ranks = 8, .hosts = 1, .nvlink = true, .nvswitch = true};
  const Layout sparse{.ranks = 4, .hosts = 4};
  Parameters p;
  p.nvls = true;
  CHECK(candidates(CollectiveKind::kAllToAll, cluster, p, release(11)) == std::vector{Algorithm::kPairwise});
  CHECK(candidates(CollectiveKind::kAllToAll, cluster, p, release(12)) == std::vector{Algorithm::kPxn});
  CHECK(candidates(CollectiveKind::kSendReceive, cluster, p, release(11)) == std::vector{Algorithm::kShift});
  CHECK(candidates(CollectiveKind::kAllReduce, box, p, release(16)) == std::vector{Algorithm::kRing});
  CHECK(candidates(CollectiveKind::kAllReduce, box, p, release(17)) == std::vector{Algorithm::kRing, Algorithm::kNvls});
  CHECK(candidates(CollectiveKind::kAllReduce, cluster, p, release(17)) == std::vector{Algorithm::kRing, Algorithm::kTree});
  CHECK(candidates(CollectiveKind::kAllReduce, cluster, p, release(18)) == std::vector{Algorithm::kRing, Algorithm::kTree, Algorithm::kNvlsTree});
  CHECK(candidates(CollectiveKind::kAllGather, sparse, p, release(22)) == std::vector{Algorithm::kRing});
  CHECK(candidates(CollectiveKind::kAllGather, sparse, p, release(23)) == std::vector{Algorithm::kRing, Algorithm::kPat});
}

// 16 ranks on 2 hosts, 2 channels: LL up to 2 * 256 * 16 * 128 B = 1 MiB on a ring; on a tree, 2 * 256 * 512 B = 256 KiB.
// In one host half of a ring's. Trees: always on two hosts. On four (32 ranks): 10000 B/us a ring, 7500 a tree,
// 10000 * 7500 / 2500 = 30000 B/us; 6 * 31 = 186 us less 15 * 2 + 4 * 7 = 58: 128 us, so 3.84 MB. Over PCIe alone, of
// 5000 and 3333: 10000 B/us, 1.28 MB.
TEST_CASE("nccl releases: 2.4 chose by size") {
  const Layout two{.ranks = 16, .hosts = 2};
  const Layout four{.ranks = 32, .hosts = 4};
  const Layout one{.ranks = 16, .hosts = 1};
  const Layout pcie{.ranks = 32, .hosts = 4, .nvlink = false};
  CHECK(ll_limit(CollectiveKind::kAllReduce, Algorithm::kRing, two, 2) == 1 << 20);
  CHECK(ll_limit(CollectiveKind::kAllReduce, Algorithm::kTree, two, 2) == 1 << 18);
  CHECK(ll_limit(CollectiveKind::kAllReduce, Algorithm::kRing, one, 2) == 1 << 19);
  CHECK(ll_limit(CollectiveKind::kBroadcast, Algorithm::kRing, two, 2) == 1 << 16);
  CHECK(tree_limit(two, 2) == std::numeric_limits<std::int64_t>::max());
  CHECK(tree_limit(four, 2) == 3'840'000);
  CHECK(tree_limit(pcie, 2) == doctest::Approx(1'280'000).epsilon(1e-5));
  CHECK(tree_limit(one, 2) == 0);
}

// The least time would be LL128's for all of these: 2.4 had none, and left LL at its limit whatever it costs.
TEST_CASE("nccl releases: the choice of 2.4 against the estimate") {
  Parameters p;
  p.channels = 2;
  const Layout two{.ranks = 16, .hosts = 2};
  const IdleRate rate{12e9, 100e9};
  const auto pick = [&](Bytes bytes, Forced forced) {
    IdleRates rates{};
    rates[static_cast<std::size_t>(Algorithm::kRing)] = rates[static_cast<std::size_t>(Algorithm::kTree)] = rate;
    const Choice choice = choose(CollectiveKind::kAllReduce, bytes, two, rates, forced, p);
    return std::pair{choice.algorithm, choice.protocol};
  };
  Forced ring = release(4);
  ring.algorithm = Algorithm::kRing;
  CHECK(pick(1_MiB, ring) == std::pair{Algorithm::kRing, Protocol::kLl});
  CHECK(pick(2_MiB, ring) == std::pair{Algorithm::kRing, Protocol::kSimple});
  CHECK(pick(1_MiB, release(4)) == std::pair{Algorithm::kTree, Protocol::kSimple});
  CHECK(pick(1_GiB, release(4)).first == Algorithm::kTree);
  ring.nccl = 5;
  CHECK(pick(1_MiB, ring).second == Protocol::kLl128);
  ring.nccl = 4;
  ring.protocol = Protocol::kSimple;
  CHECK(pick(Bytes{8}, ring).second == Protocol::kSimple);
  ring.protocol = Protocol::kLl128;
  CHECK(pick(Bytes{8}, ring).second == Protocol::kLl);
}

TEST_SUITE_END();
