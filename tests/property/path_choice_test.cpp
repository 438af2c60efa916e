// Path choice against what is known: balls in bins, polarization, structured headers; E-ECMP and QP scaling on
// racks beside a Monte-Carlo table; and max-min certificates of everything that policies and failures lay.
#include <doctest/doctest.h>

#include <map>
#include <numeric>
#include <string>

#include "sim/flow/system.hpp"
#include "sim/flow/tolerance.hpp"
#include "tests/support/hash_statistics.hpp"
#include "tests/support/polarization.hpp"
#include "tests/support/racks.hpp"
#include "tests/support/run_fixture.hpp"

using namespace stepcast;
using namespace stepcast::run;
using network::HashFunction;
using network::PathPolicy;
using run::testing::Racks;

namespace {

constexpr std::initializer_list<HashFunction> kCrcs{HashFunction::kCrc16Bisync, HashFunction::kCrc16Ccitt, HashFunction::kCrc32Low,
                                                    HashFunction::kCrc32High};

}  // namespace

TEST_SUITE_BEGIN("property");

// Balls in bins: 1000 on 16 gives 1.229 (../shared/headlines/ecmp_collision_montecarlo.csv, 1.227 at 1024).
TEST_CASE("hash: 1000 flows on 16 links are as uneven as balls in bins") {
  CHECK(network::testing::mean_max_over_mean(HashFunction::kIdeal, 1000, 16, 400) == doctest::Approx(1.229).epsilon(0.01));
  for (const HashFunction crc : kCrcs) {
    CAPTURE(static_cast<int>(crc));
    CHECK(std::abs(network::testing::mean_max_over_mean(crc, 1000, 16, 400) - 1.229) < 0.02);
  }
}

// The means of the same table for other numbers of flows, to 2 % (their own rounding and 2000 rounds here).
TEST_CASE("hash: fewer flows are more uneven") {
  const std::map<std::size_t, double> known{{16, 3.075}, {32, 2.410}, {64, 1.972}, {128, 1.671}, {256, 1.468}, {512, 1.325}, {1024, 1.227}};
  for (const auto& [flows, ratio] : known) {
    CAPTURE(flows);
    const int rounds = flows < 256 ? 2000 : 400;
    CHECK(network::testing::mean_max_over_mean(HashFunction::kIdeal, flows, 16, rounds) == doctest::Approx(ratio).epsilon(0.02));
    CHECK(network::testing::mean_max_over_mean(HashFunction::kCrc16Ccitt, flows, 16, rounds) == doctest::Approx(ratio).epsilon(0.02));
  }
}

// XOR cancels numbers that run in step: sender i to QP i puts all on one link. CRC takes them apart, as it does
// neighbours of a ring; a mixed hash is as uneven as chance.
TEST_CASE("hash: sequential numbers collide under XOR, not under CRC") {
  using network::testing::Pattern;
  const auto uneven = [](HashFunction function, Pattern pattern) {
    return network::testing::max_over_mean({.function = function}, network::HashFields::kFiveTupleAndQp, 1024, 16,
                                           [&](std::size_t f) { return network::testing::structured_header(pattern, f); });
  };
  CHECK(uneven(HashFunction::kXor16, Pattern::kIncast) == 16.0);
  CHECK(uneven(HashFunction::kXor16, Pattern::kRing) > 7.9);  // i ^ (i + 1) is 1 for half of them
  CHECK(uneven(HashFunction::kXor16, Pattern::kOnePair) == 1.0);
  for (const HashFunction crc : kCrcs) {
    CAPTURE(static_cast<int>(crc));
    CHECK(uneven(crc, Pattern::kIncast) < 2.1);
    CHECK(uneven(crc, Pattern::kRing) < 2.1);
  }
  CHECK(uneven(HashFunction::kIdeal, Pattern::kIncast) < 1.5);
  CHECK(uneven(HashFunction::kIdeal, Pattern::kIncast) > 1.05);
}

// The same function and seed at both tiers: a spine gets from a leaf only flows with h = i mod k1 and uses
// k2 / gcd(k1, k2) of its up-links for them. A seed per switch ends that for a hash that mixes; a linear one only
// renames links where k1 and k2 are powers of two, and needs other bits (or another function) at the second tier.
TEST_CASE("hash: polarization at the second tier") {
  const PathRules same{.policy = PathPolicy::kEcmp, .seed_per_switch = false};
  const PathRules seeded{.policy = PathPolicy::kEcmp};
  for (const auto& [k1, k2] : {std::pair{4, 4}, {4, 2}, {4, 6}, {6, 4}, {4, 3}, {8, 4}}) {
    CAPTURE(k1);
    CAPTURE(k2);
    CHECK(run::testing::core_links_used(k1, k2, same) == static_cast<double>(k2 / std::gcd(k1, k2)));
    CHECK(run::testing::core_links_used(k1, k2, seeded) == static_cast<double>(k2));
  }
  PathRules crc = same;
  crc.hash = HashFunction::kCrc16Ccitt;
  CHECK(run::testing::core_links_used(4, 4, crc) == 1.0);
  crc.seed_per_switch = true;
  CHECK(run::testing::core_links_used(4, 4, crc) == 1.0);
  crc.tier_offset = 4;
  CHECK(run::testing::core_links_used(4, 4, crc) == 4.0);
}

// Rings between racks of 16 GPUs, beside ../shared/headlines/ecmp_qp_scaling_montecarlo.csv (rows "ring"): ideal
// hash, load of the busiest up-link. 120 seeds here: standard error below 0.01.
TEST_CASE("e-ecmp: the rate of rings grows with the QPs as the Monte-Carlo table says") {
  struct Row {
    std::uint32_t racks, uplinks, qps;
    double share;
  };
  for (const Row& row : {Row{2, 16, 1, 0.300}, {2, 16, 4, 0.479}, {2, 16, 16, 0.653}, {2, 32, 1, 0.401}, {2, 32, 4, 0.688}, {2, 32, 16, 0.980},
                         {8, 16, 1, 0.245}, {8, 16, 4, 0.411}, {8, 16, 16, 0.597}, {8, 32, 1, 0.318}, {8, 32, 4, 0.594}, {8, 32, 16, 0.946}}) {
    CAPTURE(row.racks);
    CAPTURE(row.uplinks);
    CAPTURE(row.qps);
    const Racks racks{row.racks, row.uplinks};
    CHECK(racks.mean_ring_share(run::testing::e_ecmp(row.qps), 120) == doctest::Approx(row.share).epsilon(0.04));
  }
}

TEST_CASE("e-ecmp: more QPs never slow the mean, without the QP in the hash one port for all gains nothing") {
  const Racks racks{2, 32};
  double before = 0.0;
  for (const std::uint32_t qps : {1U, 2U, 4U, 8U, 16U, 64U}) {
    CAPTURE(qps);
    const double share = racks.mean_ring_share(run::testing::e_ecmp(qps), 60);
    CHECK(share >= before);
    before = share;
  }
  CHECK(before == 1.0);
  PathRules plain = run::testing::e_ecmp(1);
  plain.policy = PathPolicy::kEcmp;
  plain.source_port = network::SourcePort::kFixed;
  const double one = racks.mean_ring_share(plain, 60);
  plain.qps = 16;
  CHECK(racks.mean_ring_share(plain, 60) == one);
  plain.source_port = network::SourcePort::kRandom;  // a port of its own for each QP does what the QP field does
  CHECK(racks.mean_ring_share(plain, 60) == doctest::Approx(racks.mean_ring_share(run::testing::e_ecmp(16), 60)).epsilon(0.02));
}

// Pinning is perfect while places and up-links match; planning and adaptive choice always are; with an
// up-link gone pinning doubles up.
TEST_CASE("path policies: rings without collisions") {
  const Racks racks{2, 16};
  for (const PathPolicy policy : {PathPolicy::kIdeal, PathPolicy::kPinned, PathPolicy::kPlanned, PathPolicy::kAdaptive, PathPolicy::kSpray}) {
    CAPTURE(static_cast<int>(policy));
    CHECK(racks.ring_share({.policy = policy}) == doctest::Approx(1.0));
  }
  const scenario::Failure gone{.link = {}, .switch_name = "spine3", .at = {}, .fraction = 0.0};
  const std::vector<topology::LinkChange> changes = topology::find_failures(racks.fabric(), {&gone, 1});
  CHECK(racks.ring_share({.policy = PathPolicy::kPinned, .changes = changes}) == doctest::Approx(0.5));
  CHECK(racks.ring_share({.policy = PathPolicy::kPlanned, .changes = changes}) == doctest::Approx(0.5));  // 16 rings, 15 links
  CHECK(racks.ring_share({.changes = changes}) == doctest::Approx(15.0 / 16));
}

namespace {

PathRules random_rules(Rng& rng, const topology::Fabric& fabric) {
  PathRules rules;
  rules.policy = static_cast<PathPolicy>(rng.below(8));
  rules.hash = static_cast<HashFunction>(rng.below(8));
  rules.seed_per_switch = rng.below(2) == 0;
  rules.source_port = static_cast<network::SourcePort>(rng.below(4));
  rules.qps = 1 + static_cast<std::uint32_t>(rng.below(6));
  rules.qp_mode = rng.below(2) == 0 ? network::QpMode::kSplit : network::QpMode::kRoundRobin;
  rules.seed = rng.next();
  // Some spines fail or slow down; one stays whole.
  std::vector<scenario::Failure> failures;
  for (std::uint64_t i = rng.below(4); i > 0; --i) {
    failures.push_back({.link = {}, .switch_name = "spine" + std::to_string(1 + rng.below(15)), .at = {},
                        .fraction = rng.below(2) == 0 ? 0.0 : rng.uniform(0.1, 0.9)});
  }
  rules.changes = topology::find_failures(fabric, failures);
  return rules;
}

}  // namespace

// Whatever a policy lays: what leaves a NIC arrives, one whole ring on each; the solver's rates are those of
// the naive full solution, bit for bit, and no link is overloaded.
TEST_CASE("path policies: every choice conserves traffic and is solved exactly") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    Rng rng{seed, "path rules"};
    const std::uint32_t count = 2 + static_cast<std::uint32_t>(rng.below(4));
    const Racks racks{count, 16};
    const topology::Fabric& fabric = racks.fabric();
    const PathRules rules = random_rules(rng, fabric);
    CAPTURE(static_cast<int>(rules.policy));
    LinkPaths paths{fabric, rules};
    std::vector<std::uint32_t> order(count);
    std::iota(order.begin(), order.end(), 0U);
    flow::Solver solver;
    std::vector<flow::FlowIndex> rings;
    racks.load_rings(paths, order, solver, rings);
    std::vector<flow::FlowIndex> all;
    const flow::System system = solver.system(all);
    const std::vector<double> naive = flow::naive_max_min(system);
    for (std::size_t f = 0; f < all.size(); ++f) CHECK(std::abs(solver.rate(all[f]) - naive[f]) <= flow::tolerance::kCertificate * naive[f]);
    for (const topology::Port& port : fabric.ports) {
      CHECK(solver.load(flow::LinkIndex{port.down}) == doctest::Approx(solver.load(flow::LinkIndex{port.up})));
    }
    for (std::uint32_t slot = 0; slot < solver.link_count(); ++slot) {
      CHECK(solver.load(flow::LinkIndex{slot}) <= paths.capacity(slot) * (1 + flow::tolerance::kCertificate));
    }
  }
}

// A reduce-scatter on two leaves: whatever the policy, folding changes nothing, and nor does running twice.
TEST_CASE("path policies: folded and unfolded steps agree") {
  plan::ProgramBuilder b{"one"};
  const auto compute = b.stream(plan::StreamKind::kCompute, "compute");
  b.collective(compute, "sync", {.kind = plan::CollectiveKind::kReduceScatter, .group = plan::GroupId{0u}, .bytes = Bytes{1'000'000'000},
                                 .purpose = plan::Purpose::kData});
  const plan::Plan plan = run::testing::one_program(std::move(b).finish(), 8, 8, {{.name = "dp", .axes = {plan::Axis::kData}, .stages = {}}});
  const run::testing::TestCluster cluster{8, "clos"};
  Machine machine = cluster.machine();
  const Duration ideal = simulate(plan, machine, {}).step;
  for (std::uint32_t policy = 0; policy < 8; ++policy) {
    for (const std::uint32_t qps : {1U, 4U}) {
      CAPTURE(policy);
      CAPTURE(qps);
      machine.paths = {.policy = static_cast<PathPolicy>(policy), .qps = qps};
      const Result folded = simulate(plan, machine, {.fold = true});
      const Result all = simulate(plan, machine, {.fold = false});
      CHECK(folded.step == all.step);
      CHECK(folded.step >= ideal);
      CHECK(simulate(plan, machine, {.fold = false}).order_fingerprint == all.order_fingerprint);
    }
  }
}

TEST_SUITE_END();
