// Paths of single connections and steps on a fabric that fails, worked out by hand.
#include <doctest/doctest.h>

#include <map>
#include <set>
#include <string>

#include "sim/base/diagnostic.hpp"
#include "sim/run/link_paths.hpp"
#include "tests/support/run_fixture.hpp"

using namespace stepcast;
using namespace stepcast::run;
using network::PathPolicy;

TEST_SUITE_BEGIN("unit");

namespace {

// One NIC a node, four nodes a leaf, four spines.
topology::Fabric small(std::int64_t nodes) {
  scenario::Cluster cluster = topology::test::cluster_of(nodes, "clos");
  cluster.fabric->nics_per_node = 1;
  cluster.fabric->leaf_ports = 4;
  return topology::build_fabric(topology::test::nvswitch_box(), cluster);
}

std::map<std::string, double> uses_by_name(const LinkPaths& paths, const std::vector<BundleUse>& uses) {
  std::map<std::string, double> named;
  for (const BundleUse& use : uses) named[paths.slots().name(use.bundle)] += use.coefficient;
  return named;
}

std::map<std::string, double> lay(LinkPaths& paths, std::uint32_t from, std::uint32_t to, std::uint32_t qp = 7) {
  std::vector<BundleUse> uses;
  paths.add({.from_port = from, .to_port = to, .local_qp = qp, .remote_qp = qp}, 1.0, 0, uses);
  return uses_by_name(paths, uses);
}

std::string spine_of(const std::map<std::string, double>& named) {
  for (const auto& [name, weight] : named)
    if (name.starts_with("leaf0 -> spine")) return name.substr(9);
  return "none";
}

topology::LinkChange fails(const topology::Fabric& fabric, const char* name, Duration at = {}, double fraction = 0.0) {
  const bool is_link = std::string{name}.find("->") != std::string::npos;
  scenario::Failure failure{.link = {}, .switch_name = {}, .at = at, .fraction = fraction};
  (is_link ? failure.link : failure.switch_name) = name;
  return topology::find_failures(fabric, {&failure, 1})[0];
}

}  // namespace

TEST_CASE("link paths: one hashed path of four links") {
  const topology::Fabric fabric = small(8);
  const PathRules rules{.policy = PathPolicy::kEEcmp};
  LinkPaths paths{fabric, rules};
  const auto named = lay(paths, 0, 5);
  CHECK(named.size() == 4);
  CHECK(named.at("node0/nic0 -> leaf0") == 1.0);
  CHECK(named.at("leaf1 -> node5/nic0") == 1.0);
  CHECK(named.at("leaf0 -> " + spine_of(named)) == 1.0);
  CHECK(named.at(spine_of(named) + " -> leaf1") == 1.0);
}

// Plain ECMP with one port for all cannot tell QPs of a pair apart; with the QP in the hash they spread.
TEST_CASE("link paths: the destination QP spreads the QPs of a pair") {
  const topology::Fabric fabric = small(8);
  for (const PathPolicy policy : {PathPolicy::kEcmp, PathPolicy::kEEcmp}) {
    const PathRules rules{.policy = policy, .source_port = network::SourcePort::kFixed, .qps = 64, .qp_mode = network::QpMode::kSplit};
    LinkPaths paths{fabric, rules};
    const auto named = lay(paths, 0, 5);
    CHECK(named.size() == (policy == PathPolicy::kEcmp ? 4 : 2 + 2 * 4));
    CHECK(named.at("node0/nic0 -> leaf0") == doctest::Approx(1.0));
  }
}

// Three tiers of two: spines by the port below its leaf, cores by the leaf in its pod. The four receivers of a
// pod are met through four cores (by the port alone it would be two).
TEST_CASE("link paths: pinned in three tiers is d-mod-k") {
  scenario::Cluster cluster = topology::test::cluster_of(16, "clos-3tier");
  cluster.fabric->nics_per_node = 1;
  cluster.fabric->leaf_ports = 2;
  cluster.fabric->nodes_per_pod = 4;
  const topology::Fabric fabric = topology::build_fabric(topology::test::nvswitch_box(), cluster);
  const PathRules rules{.policy = PathPolicy::kPinned};
  LinkPaths paths{fabric, rules};
  const char* up[] = {"spine0 -> core0", "spine1 -> core2", "spine0 -> core1", "spine1 -> core3"};
  for (std::uint32_t p = 0; p < 4; ++p) {
    const auto named = lay(paths, 0, 8 + p);
    CAPTURE(p);
    CHECK(named.size() == 6);
    CHECK(named.count(up[p]) == 1);
  }
}

// Ports 4 to 7 are positions 0 to 3 below leaf1: spines 0 to 3. With spine 1 gone 0, 2, 3 serve positions mod 3.
TEST_CASE("link paths: pinned by the receiver's place") {
  const topology::Fabric fabric = small(8);
  PathRules rules{.policy = PathPolicy::kPinned};
  LinkPaths paths{fabric, rules};
  for (std::uint32_t p = 0; p < 4; ++p) CHECK(spine_of(lay(paths, 0, 4 + p)) == "spine" + std::to_string(p));
  rules.changes = {fails(fabric, "spine1")};
  LinkPaths fewer{fabric, rules};
  CHECK(spine_of(lay(fewer, 0, 4)) == "spine0");
  CHECK(spine_of(lay(fewer, 0, 5)) == "spine2");
  CHECK(spine_of(lay(fewer, 0, 6)) == "spine3");
  CHECK(spine_of(lay(fewer, 0, 7)) == "spine0");
}

// Four connections of four NICs onto four spines: one each. A plan that fails goes round the failure.
TEST_CASE("link paths: a planner leaves no collision, and fails over") {
  const topology::Fabric fabric = small(8);
  const PathRules rules{.policy = PathPolicy::kPlanned};
  LinkPaths paths{fabric, rules};
  std::set<std::string> spines;
  for (std::uint32_t p = 0; p < 4; ++p) spines.insert(spine_of(lay(paths, p, 4 + p)));
  CHECK(spines.size() == 4);
  CHECK(paths.take_placed().size() == 4 * 4);
  const std::string before = spine_of(lay(paths, 2, 6));  // known: the same again, nothing reserved
  CHECK(paths.take_placed().empty());
  std::vector<std::uint32_t> slots;
  paths.apply(fails(fabric, before.c_str()), slots);
  CHECK(slots.size() == 4);
  CHECK(spine_of(lay(paths, 2, 6)) != before);
  CHECK(paths.capacity(slots[0]) == 0.0);
}

TEST_CASE("link paths: what is only asked leaves no plan and no load") {
  const topology::Fabric fabric = small(8);
  for (const PathPolicy policy : {PathPolicy::kPlanned, PathPolicy::kAdaptive}) {
    const PathRules rules{.policy = policy};
    LinkPaths paths{fabric, rules};
    const std::string first = spine_of(lay(paths, 0, 5));
    paths.forget_placed();
    CHECK(spine_of(lay(paths, 0, 5)) == first);
  }
}

// Each of four flows from one leaf takes the spine that the others have left; what has ended frees its own.
TEST_CASE("link paths: adaptive choice is by load") {
  const topology::Fabric fabric = small(8);
  const PathRules rules{.policy = PathPolicy::kAdaptive};
  LinkPaths paths{fabric, rules};
  std::map<std::string, LinkPaths::Placed> placed;
  for (std::uint32_t p = 0; p < 4; ++p) {
    const std::string spine = spine_of(lay(paths, p, 4 + p));
    placed[spine] = paths.take_placed();
  }
  REQUIRE(placed.size() == 4);
  paths.release(placed.at("spine2"));
  CHECK(spine_of(lay(paths, 0, 6)) == "spine2");
}

// Degraded to a quarter, a spine's links count as four times as loaded.
TEST_CASE("link paths: a slow link looks loaded") {
  const topology::Fabric fabric = small(8);
  PathRules rules{.policy = PathPolicy::kAdaptive, .changes = {fails(fabric, "leaf0 -> spine2", {}, 0.25)}};
  LinkPaths paths{fabric, rules};
  std::map<std::string, int> count;
  for (std::uint32_t f = 0; f < 13; ++f) ++count[spine_of(lay(paths, 0, 5, 100 + f))];
  CHECK(count["spine2"] == 1);
  CHECK(count["spine0"] == 4);
}

TEST_CASE("link paths: even spreading over survivors, no path is the user's error") {
  const topology::Fabric fabric = small(8);
  PathRules rules{.changes = {fails(fabric, "spine1"), fails(fabric, "leaf0 -> spine3")}};
  LinkPaths paths{fabric, rules};
  const auto named = lay(paths, 0, 5);
  CHECK(named.at("leaf0 -> spine0") == 0.5);
  CHECK(named.at("leaf0 -> spine2") == 0.5);
  CHECK(lay(paths, 5, 0).at("spine3 -> leaf0") == doctest::Approx(1.0 / 3));
  rules.changes.push_back(fails(fabric, "leaf1"));
  LinkPaths cut{fabric, rules};
  CHECK_THROWS_WITH_AS(lay(cut, 0, 5), doctest::Contains("no path is left from node0/nic0 to node5/nic0"), UserError);
}

namespace {

// A reduce-scatter of 8 GB over 8 hosts of 8 GPUs, ranks in host order: 8 rings, 7 GB on every edge of each.
plan::Plan scatter() {
  plan::ProgramBuilder b{"one"};
  const auto compute = b.stream(plan::StreamKind::kCompute, "compute");
  b.collective(compute, "sync", {.kind = plan::CollectiveKind::kReduceScatter, .group = plan::GroupId{0u}, .bytes = Bytes{8'000'000'000},
                                 .purpose = plan::Purpose::kData});
  return run::testing::one_program(std::move(b).finish(), 8, 8, {{.name = "dp", .axes = {plan::Axis::kData}, .stages = {}}});
}

Result run_with(const run::testing::TestCluster& cluster, const PathRules& rules) {
  Machine machine = cluster.machine();
  machine.paths = rules;
  return simulate(scatter(), machine, {});
}

}  // namespace

// Two leaves of four hosts, 32 spines: every policy without collisions takes 7 GB / 48 GB/s.
// The NIC of one host at half its rate from 50 ms on: what is left then moves at 24 GB/s.
TEST_CASE("run: a link that slows down during the step") {
  const run::testing::TestCluster cluster{8, "clos"};
  const Result ideal = run_with(cluster, {});
  const double start = ideal.step.seconds() - 7.0 / 48;
  for (const PathPolicy policy : {PathPolicy::kIdeal, PathPolicy::kPinned, PathPolicy::kPlanned, PathPolicy::kAdaptive, PathPolicy::kSpray}) {
    CAPTURE(static_cast<int>(policy));
    CHECK(run_with(cluster, {.policy = policy}).step.seconds() == doctest::Approx(ideal.step.seconds()));
    PathRules rules{.policy = policy, .changes = {fails(cluster.fabric(), "node3/nic2 -> leaf0", Duration::microseconds(50000), 0.5)}};
    const Result slow = run_with(cluster, rules);
    CHECK_FALSE(slow.folded);
    CHECK(slow.step.seconds() == doctest::Approx(0.05 + (7.0 - 48 * (0.05 - start)) / 24));
  }
}

// With 30 of 32 spines gone from 50 ms on, 8 rings share two up-links: 4 on each at 12 GB/s.
TEST_CASE("run: spines that fail during the step, policies that go round evenly") {
  const run::testing::TestCluster cluster{8, "clos"};
  const double start = run_with(cluster, {}).step.seconds() - 7.0 / 48;
  for (const PathPolicy policy : {PathPolicy::kIdeal, PathPolicy::kPinned, PathPolicy::kAdaptive, PathPolicy::kFlowlet}) {
    CAPTURE(static_cast<int>(policy));
    PathRules rules{.policy = policy, .flowlet_gap = Duration::microseconds(3'600'000'000)};
    for (int spine = 2; spine < 32; ++spine) {
      rules.changes.push_back(fails(cluster.fabric(), ("spine" + std::to_string(spine)).c_str(), Duration::microseconds(50000)));
    }
    CHECK(run_with(cluster, rules).step.seconds() == doctest::Approx(0.05 + (7.0 - 48 * (0.05 - start)) / 12));
  }
}

namespace {

// Two hosts below each of two leaves, one GPU and one card each, two spines. Stage 0 (GPUs 0 and 1) sends twice to stage 1
// (GPUs 2 and 3), 1 GB each time; before the second time GPU 0 is `idle` later than its first transfer's end.
struct Pair {
  topology::Fabric fabric = [] {
    scenario::Cluster cluster = topology::test::cluster_of(4, "clos");
    cluster.fabric->nics_per_node = 1;
    cluster.fabric->leaf_ports = 2;
    topology::ClusterHardware box = topology::test::nvswitch_box();
    box.gpus_per_node = 1;
    return topology::build_fabric(box, cluster);
  }();
  topology::Router router{fabric};
  gpu::GpuModel gpu{gpu::testing::round_gpu()};

  [[nodiscard]] double step_s(const PathRules& rules, double idle_ms) const {
    plan::Plan plan;
    plan.name = "pair";
    plan.degrees[plan::Axis::kPipeline] = 2;
    plan.degrees[plan::Axis::kData] = 2;
    plan::ProgramBuilder first{"stage 0"};
    const auto send = first.stream(plan::StreamKind::kCommunication, "pp.send");
    const auto work = first.stream(plan::StreamKind::kCompute, "compute");
    first.send(send, "send 1", 1, Bytes{1'000'000'000});
    first.order(send, work);
    first.compute(work, "think", run::testing::milliseconds_of_work(idle_ms));
    first.order(work, send);
    first.send(send, "send 2", 1, Bytes{1'000'000'000});
    plan::ProgramBuilder second{"stage 1"};
    const auto receive = second.stream(plan::StreamKind::kCommunication, "pp.recv");
    const auto rest = second.stream(plan::StreamKind::kCompute, "compute");
    second.recv(receive, "recv 1", 0, Bytes{1'000'000'000});
    second.recv(receive, "recv 2", 0, Bytes{1'000'000'000});
    second.order(receive, rest);
    second.compute(rest, "end", run::testing::milliseconds_of_work(1));
    plan.programs.push_back(std::move(first).finish());
    plan.programs.push_back(std::move(second).finish());
    plan.program_of_stage = {plan::ProgramId{0u}, plan::ProgramId{1u}};
    const Machine machine{.fabric = fabric, .router = router, .gpu = gpu, .collectives = {}, .forced = {},
                          .communicator_bytes = Bytes{0}, .communication_launch = Duration{}, .paths = rules};
    return simulate(plan, machine, {}).step.seconds();
  }
};

}  // namespace

// spine1 is down until 25 ms, so both first transfers (20.8 ms alone) share spine0 until then. At 25 ms it is repaired:
// nothing moves, since no path is broken, and both end at 41.7 ms. The second transfers follow after `idle` of work:
// a gap longer than 256 us lets them spread (20.8 ms), a shorter one keeps both on spine0 (41.7 ms).
TEST_CASE("run: a flowlet moves only after an idle gap") {
  const Pair pair;
  PathRules rules{.policy = PathPolicy::kFlowlet, .flowlet_gap = Duration::microseconds(256)};
  rules.changes = {fails(pair.fabric, "spine1"), fails(pair.fabric, "spine1", Duration::microseconds(25'000), 1.0)};
  const double transfer = 1e9 / 48e9;
  const double moved = pair.step_s(rules, 1.0);
  CHECK(moved == doctest::Approx(3 * transfer + 0.002).epsilon(0.01));
  const double kept = pair.step_s(rules, 0.1);
  CHECK(kept == doctest::Approx(4 * transfer + 0.0011).epsilon(0.01));
  rules.policy = PathPolicy::kAdaptive;
  CHECK(pair.step_s(rules, 0.1) == doctest::Approx(3 * transfer + 0.0011).epsilon(0.01));
}

// Failing after the step has ended changes nothing and keeps nothing waiting.
TEST_CASE("run: a failure after the step") {
  const run::testing::TestCluster cluster{8, "clos"};
  const PathRules rules{.policy = PathPolicy::kPinned, .changes = {fails(cluster.fabric(), "leaf0", Duration::microseconds(100'000'000))}};
  CHECK(run_with(cluster, rules).step == run_with(cluster, {.policy = PathPolicy::kPinned}).step);
}

TEST_SUITE_END();
