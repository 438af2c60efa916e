#include <doctest/doctest.h>

#include <map>

#include "models/collective/cost.hpp"
#include "models/collective/device_use.hpp"
#include "models/collective/nccl_constants.hpp"

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
// 8.4 + 28 * max(3.4, 3 * 1.0) + 2 * 14 = 131.6 us. A network 5 us slower: 2 * 2 * 5 more, as Simple flushes.
TEST_CASE("collective: ring latency worked by hand") {
  const Layout layout{.ranks = 16, .hosts = 2};
  const auto us = [&](Algorithm a, Protocol p, const Parameters& parameters) {
    return latency_of(CollectiveKind::kAllReduce, a, p, layout, parameters).seconds() * 1e6;
  };
  CHECK(us(Algorithm::kRing, Protocol::kSimple, {}) == doctest::Approx(131.6));
  Parameters far;
  far.network.latency_s = 5e-6;
  CHECK(us(Algorithm::kRing, Protocol::kSimple, far) == doctest::Approx(151.6));
  CHECK(us(Algorithm::kRing, Protocol::kLl, far) == doctest::Approx(6.6 + 28 * 1.0 + 2 * (2.7 + 5)));
  // Tree, LL: 6.8 + 2 (7 * 0.6 + 1 * (5 + 5)).
  CHECK(us(Algorithm::kTree, Protocol::kLl, far) == doctest::Approx(35.2));
  // NVLS tree: 25 + 2 * 1 * (14 + 2 * 5). CollNet: 2 (3.7 + 7 * 0.4) + 31 + 2 * 5.
  CHECK(us(Algorithm::kNvlsTree, Protocol::kSimple, far) == doctest::Approx(73.0));
  CHECK(us(Algorithm::kCollNet, Protocol::kSimple, far) == doctest::Approx(54.0));
}

// 8 hosts of one GPU: 8 + 3 * 14 / 3.5 + 8 * 2.8 = 42.4 us; and a ring takes the tree's hop of the network.
TEST_CASE("collective: one rank a host") {
  const Layout layout{.ranks = 8, .hosts = 8};
  CHECK(latency_of(CollectiveKind::kAllGather, Algorithm::kPat, Protocol::kSimple, layout, {}).seconds() == doctest::Approx(42.4e-6));
  CHECK(latency_of(CollectiveKind::kAllGather, Algorithm::kRing, Protocol::kLl, layout, {}).seconds() ==
        doctest::Approx(6.6e-6 + 7 * 5e-6));
}

// NVLS: each of 8 GPUs sends the buffer once and its own eighth again. PAT: everyone passes on n-1 parts of n.
TEST_CASE("collective: edges of NVLS, its tree, CollNet and PAT carry the bytes of their algorithms") {
  CHECK(sent_by(edges_of(Algorithm::kNvls, hosts_of(1, 8)), 3) == doctest::Approx(1.125));
  const auto crossing = [](Algorithm algorithm, std::uint32_t hosts) {
    std::map<std::uint32_t, double> sent;
    for (const Edge& edge : edges_of(algorithm, hosts_of(hosts, 4)))
      if (edge.from / 4 != edge.to / 4) sent[edge.from / 4] += edge.share;
    return sent;
  };
  for (const auto& [host, share] : crossing(Algorithm::kNvlsTree, 2)) CHECK(share == doctest::Approx(1.0));
  for (const auto& [host, share] : crossing(Algorithm::kCollNet, 6)) CHECK(share == doctest::Approx(1.0));
  for (const std::uint32_t n : {2u, 3u, 8u, 12u}) {
    CAPTURE(n);
    CHECK(sent_by(edges_of(Algorithm::kPat, hosts_of(n, 1)), 1) == doctest::Approx(1.0));
  }
  CHECK(traffic_bytes(CollectiveKind::kAllGather, Algorithm::kPat, 8_GB, 8) == doctest::Approx(7e9));
  CHECK(edges_of(Algorithm::kShift, hosts_of(1, 3)).size() == 3);
}

namespace {

IdleRates rates(double ring, double tree, double nvls = 0.0) {
  IdleRates idle{};
  idle[static_cast<std::size_t>(Algorithm::kRing)] = {ring, 360e9};
  idle[static_cast<std::size_t>(Algorithm::kTree)] = {tree, 180e9};
  idle[static_cast<std::size_t>(Algorithm::kNvls)] = {nvls, nvls};
  idle[static_cast<std::size_t>(Algorithm::kNvlsTree)] = {nvls, nvls};
  return idle;
}

}  // namespace

// A ring at 360 GB/s; the tree's busiest edge carries twice the share, so it moves at half of that.
TEST_CASE("collective: small messages take LL, large ones Simple, long rings lose to trees when small") {
  const Layout node{.ranks = 8, .hosts = 1};
  const auto pick = [](const Layout& layout, Bytes bytes, const Forced& forced = {}) {
    return choose(CollectiveKind::kAllReduce, bytes, layout, rates(360e9, 180e9), forced, {});
  };
  CHECK(pick(node, 4_KiB).protocol == Protocol::kLl);
  CHECK(pick(node, 1_GiB).protocol == Protocol::kSimple);
  const Layout cluster{.ranks = 1024, .hosts = 128};
  CHECK(pick(cluster, 1_MiB).algorithm == Algorithm::kTree);
  CHECK(pick(cluster, 64_GiB).algorithm == Algorithm::kRing);
  CHECK(pick(cluster, 1_MiB, {.algorithm = Algorithm::kRing, .protocol = {}}).algorithm == Algorithm::kRing);
  CHECK(pick(node, 1_GiB, {.algorithm = {}, .protocol = Protocol::kLl}).protocol == Protocol::kLl);
}

// 450 GB/s links: a ring of 8 needs 1.75 S, NVLS 1.125 S at 85 %.
TEST_CASE("collective: NVLS where the generation and a switch allow it, for all-reduce of three GPUs and more") {
  const Parameters hopper = nccl_constants(generation_of("9.0"));
  const Parameters ampere = nccl_constants(generation_of("8.0"));
  Layout box{.ranks = 8, .hosts = 1, .nvlink = true, .nvswitch = true};
  CHECK(choose(CollectiveKind::kAllReduce, 1_GiB, box, rates(450e9, 0, 400e9), {}, hopper).algorithm == Algorithm::kNvls);
  CHECK(choose(CollectiveKind::kAllReduce, 8_KiB, box, rates(450e9, 0, 400e9), {}, hopper).algorithm == Algorithm::kRing);
  CHECK_FALSE(can_make(Algorithm::kNvls, CollectiveKind::kAllReduce, box, ampere));
  // All-gather: only where it is named; its traffic is such that each link carries the buffer once.
  CHECK(choose(CollectiveKind::kAllGather, 1_GiB, box, rates(450e9, 0, 400e9), {}, hopper).algorithm == Algorithm::kRing);
  CHECK(candidates(CollectiveKind::kAllGather, box, hopper, {.algorithm = Algorithm::kNvls, .protocol = {}, .nccl = {}}) == std::vector{Algorithm::kNvls});
  CHECK(traffic_bytes(CollectiveKind::kAllGather, Algorithm::kNvls, 9_GB, 8) * 1.125 == doctest::Approx(9e9));
  box.ranks = 2;
  CHECK_FALSE(can_make(Algorithm::kNvls, CollectiveKind::kAllReduce, box, hopper));
  const Layout uneven{.ranks = 15, .hosts = 2, .nvlink = true, .nvswitch = true};
  CHECK_FALSE(can_make(Algorithm::kNvlsTree, CollectiveKind::kAllReduce, uneven, hopper));
}

TEST_CASE("collective: what cannot be is left aside, CollNet is never chosen unasked") {
  Parameters parameters;
  const Layout cluster{.ranks = 16, .hosts = 2};
  CHECK(candidates(CollectiveKind::kAllGather, cluster, parameters, {.algorithm = Algorithm::kTree, .protocol = {}, .nccl = {}}) == std::vector{Algorithm::kRing});
  CHECK(candidates(CollectiveKind::kAllReduce, cluster, parameters) == std::vector{Algorithm::kRing, Algorithm::kTree});
  parameters.collnet = true;
  CHECK(candidates(CollectiveKind::kAllReduce, cluster, parameters, {.algorithm = Algorithm::kCollNet, .protocol = {}, .nccl = {}}) == std::vector{Algorithm::kCollNet});
  CHECK(candidates(CollectiveKind::kAllToAll, cluster, parameters, {.algorithm = Algorithm::kTree, .protocol = {}, .nccl = {}}) == std::vector{Algorithm::kPxn});
}

// 1 GB over a ring of 2 at 100 GB/s whose links inside reach 80 %: traffic 1 GB at 80 GB/s = 12.5 ms. A fill of a half
// of each byte up to 8 MB: 8 MB / 80 GB/s = 100 us, and latency 8.4 + 2 * 3.4 = 15.2 us.
TEST_CASE("collective: efficiency caps the rate, and the fill adds its bytes' time") {
  Parameters p;
  p.local.efficiency[2] = 0.8;
  p.local.fill = {.share = 0.5, .bytes = 8e6};
  const Layout pair{.ranks = 2, .hosts = 1};
  const Cost cost = evaluate(CollectiveKind::kAllReduce, 1_GB, pair, Algorithm::kRing, Protocol::kSimple, {100e9, 100e9}, p);
  CHECK(*cost.choice.rate_cap == doctest::Approx(80e9));
  CHECK(cost.choice.latency.seconds() == doctest::Approx(115.2e-6));
  CHECK(cost.seconds == doctest::Approx(12.5e-3 + 115.2e-6));
  const Cost small = evaluate(CollectiveKind::kAllReduce, Bytes{8'000'000}, pair, Algorithm::kRing, Protocol::kSimple, {100e9, 100e9}, p);
  CHECK(small.seconds == doctest::Approx(15.2e-6 + 12e6 / 80e9));
}

// 400 MB, of which a rank keeps 400/n MB: at 1000 GB/s for the ring and 500 for all-to-all, of two ranks 200 and 400 us, of
// eight 50 and 100 us. What a rank sends to the next, and what the root of a broadcast has, stays where it is.
TEST_CASE("collective: the block that a rank keeps takes the time of a copy") {
  Parameters bare;
  Parameters p;
  p.local.own_rate = 1000e9;
  p.local.pairwise_own_rate = 500e9;
  const auto extra_us = [&](CollectiveKind kind, Algorithm algorithm, std::size_t ranks) {
    const Layout box{.ranks = ranks, .hosts = 1};
    const auto seconds = [&](const Parameters& with) { return evaluate(kind, Bytes{400'000'000}, box, algorithm, Protocol::kSimple, {100e9, 100e9}, with).seconds; };
    return (seconds(p) - seconds(bare)) * 1e6;
  };
  for (const CollectiveKind kind : {CollectiveKind::kAllReduce, CollectiveKind::kAllGather, CollectiveKind::kReduceScatter}) {
    CHECK(extra_us(kind, Algorithm::kRing, 2) == doctest::Approx(200));
    CHECK(extra_us(kind, Algorithm::kRing, 8) == doctest::Approx(50));
  }
  CHECK(extra_us(CollectiveKind::kAllToAll, Algorithm::kPairwise, 2) == doctest::Approx(400));
  CHECK(extra_us(CollectiveKind::kAllToAll, Algorithm::kPairwise, 8) == doctest::Approx(100));
  CHECK(extra_us(CollectiveKind::kSendReceive, Algorithm::kShift, 2) == 0.0);
  CHECK(extra_us(CollectiveKind::kBroadcast, Algorithm::kRing, 8) == 0.0);
}

// 1 GB between two hosts at 100 GB/s: the pipeline holds 2 MB for each NIC, so 8 NICs' 16 MB take 160 us and one's 20 us.
TEST_CASE("collective: between hosts each NIC's pipeline fills") {
  Parameters p;
  p.network.fill = {.share = 0.5, .bytes = 2e6};
  const auto latency_us = [&](std::size_t nics) {
    const Layout hosts{.ranks = 16, .hosts = 2, .nics = nics};
    return evaluate(CollectiveKind::kAllGather, 1_GB, hosts, Algorithm::kRing, Protocol::kSimple, {100e9, 100e9}, p).choice.latency.seconds() * 1e6;
  };
  CHECK(latency_us(8) - latency_us(1) == doctest::Approx(140));
  // A tree of four hosts: up and down two hops each, 4 * 16 MB beside a ring's 16.
  const auto fill_us = [&](Algorithm algorithm, double share) {
    p.network.fill.share = share;
    const Layout hosts{.ranks = 32, .hosts = 4, .nics = 8};
    return evaluate(CollectiveKind::kAllReduce, 1_GB, hosts, algorithm, Protocol::kSimple, {100e9, 100e9}, p).choice.latency.seconds() * 1e6;
  };
  CHECK(fill_us(Algorithm::kTree, 0.5) - fill_us(Algorithm::kTree, 0.0) == doctest::Approx(640));
  CHECK(fill_us(Algorithm::kRing, 0.5) - fill_us(Algorithm::kRing, 0.0) == doctest::Approx(160));
}

// Ampere's LL128: 20 GB/s a channel; four channels bound a ring of 240 GB/s. Trees by size: 256 KiB is 64 B << 12,
// where LL keeps 0.4 of its rate.
TEST_CASE("collective: NCCL's ceilings per channel and its correction of trees") {
  Parameters p = nccl_constants(Generation::kAmpere);
  const Layout node{.ranks = 8, .hosts = 1};
  p.channels = 4;
  const Cost cost = evaluate(CollectiveKind::kAllReduce, 1_GiB, node, Algorithm::kRing, Protocol::kLl128, {240e9, 240e9}, p);
  CHECK(*cost.choice.rate_cap == doctest::Approx(80e9 * 128 / 120));
  CHECK(tree_correction(Protocol::kLl, 256_KiB) == 0.4);
  CHECK(tree_correction(Protocol::kLl128, 1_MiB) == 0.6);
  CHECK(tree_correction(Protocol::kLl128, 1_GiB) == 1.0);
  CHECK(tree_correction(Protocol::kLl, 8_B) == 1.0);
  CHECK(ll_ceiling(Generation::kHopper, 1) == doctest::Approx(141e9));
}

// 300 GB in a second through each GPU: an all-gather writes and reads them (600 GB/s), a reduce-scatter reads its own operand
// besides (900 GB/s). A channel is a block: all 16 for a long message, one for 32 KiB.
TEST_CASE("collective: what its kernels take from a GPU") {
  const Parameters parameters;
  const Choice ring{.algorithm = Algorithm::kRing, .protocol = Protocol::kSimple, .latency = {}, .wire_bytes = 300e9, .rate_cap = {}};
  const auto use = [&](CollectiveKind kind, Bytes bytes) { return device_use(kind, bytes, ring, 8, 1000000_us, parameters); };
  CHECK(use(CollectiveKind::kAllGather, 300_GB).memory.si() == doctest::Approx(600e9));
  CHECK(use(CollectiveKind::kReduceScatter, 300_GB).memory.si() == doctest::Approx(900e9));
  CHECK(use(CollectiveKind::kAllReduce, 300_GB).memory.si() == doctest::Approx(750e9));
  CHECK(use(CollectiveKind::kAllGather, 300_GB).sms == 16);
  CHECK(use(CollectiveKind::kAllGather, Bytes{32768}).sms == 1);
}

TEST_SUITE_END();
