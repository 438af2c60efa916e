// Several networks in one cluster: which traffic goes where, at what rate, and what is refused.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "sim/base/diagnostic.hpp"
#include "sim/run/groups.hpp"
#include "tests/support/run_fixture.hpp"
#include "topologies/bisection.hpp"
#include "topologies/failures.hpp"
#include "topologies/inventory.hpp"
#include "topologies/next_hops.hpp"

using namespace stepcast;
using namespace stepcast::literals;
using namespace stepcast::run::testing;
using scenario::TrafficAxis;

TEST_SUITE_BEGIN("unit");

namespace {

// A port of 12.5 GB/s that reaches 80 %: 10 GB/s.
topology::Nic ethernet() {
  topology::Nic nic = topology::test::nvswitch_box().nic;
  nic.name = "test-ethernet";
  nic.transport = topology::Transport::kRoce;
  nic.line_rate = topology::test::gigabytes(12.5);
  nic.efficiency = topology::test::figure(0.8);
  return nic;
}

scenario::SideNetwork beside(const char* name, std::vector<TrafficAxis> carries, std::optional<std::string> nodes, const char* preset = "clos",
                             std::int64_t nics = 1) {
  scenario::SideNetwork network;
  network.name = name;
  network.carries = std::move(carries);
  network.nodes = std::move(nodes);
  network.fabric.preset = preset;
  network.fabric.nics_per_node = nics;
  return network;
}

// Boxes of eight GPUs and eight NICs of 48 GB/s, and one Ethernet port each.
struct TwoNetworks {
  topology::ClusterHardware box = topology::test::nvswitch_box();
  scenario::Cluster cluster;
  std::optional<topology::Fabric> fabric;
  std::optional<topology::Router> router;
  gpu::GpuModel model{gpu::testing::round_gpu()};

  TwoNetworks(std::int64_t nodes, std::vector<TrafficAxis> carries) : cluster{topology::test::cluster_of(nodes, "rail-clos")} {
    box.side_networks = {{.nic = ethernet()}};
    cluster.networks = {beside("eth", std::move(carries), std::nullopt)};
    fabric = topology::build_fabric(box, cluster);
    router.emplace(*fabric);
  }
  [[nodiscard]] run::Machine machine() const {
    return {.fabric = *fabric, .router = *router, .gpu = model, .collectives = {}, .forced = {},
            .communicator_bytes = Bytes{0}, .communication_launch = Duration::microseconds(5), .paths = {}, .transports = {}, .side_networks = {}};
  }
};

std::vector<std::string> names(const topology::Fabric& fabric, const topology::Path& path) {
  std::vector<std::string> names;
  for (const topology::Path::Share& share : path.shares) names.push_back(topology::bundle_name(fabric, share.bundle));
  return names;
}

bool crosses(const topology::Fabric& fabric, const topology::Path& path, const std::string& bundle) {
  const std::vector<std::string> all = names(fabric, path);
  return std::find(all.begin(), all.end(), bundle) != all.end();
}

plan::Plan all_gather(Bytes bytes, std::int32_t tp, std::int32_t dp) {
  plan::ProgramBuilder b{"one"};
  const auto compute = b.stream(plan::StreamKind::kCompute, "compute");
  b.collective(compute, "gather", {.kind = plan::CollectiveKind::kAllGather, .group = plan::GroupId{0u}, .bytes = bytes,
                                   .purpose = plan::Purpose::kData});
  return one_program(std::move(b).finish(), tp, dp, {{.name = "dp", .axes = {plan::Axis::kData}, .stages = {}}});
}

std::string refusal(const scenario::Cluster& cluster) {
  topology::ClusterHardware box = topology::test::nvswitch_box();
  box.side_networks.assign(cluster.networks.size(), {.nic = ethernet()});
  try {
    topology::build_fabric(box, cluster);
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("networks: an axis goes over the network that carries it, the others over the cluster's own") {
  const TwoNetworks two{4, {TrafficAxis::kPipeline}};
  const topology::Fabric& fabric = *two.fabric;
  const topology::Path pipeline = two.router->path(3, 8 + 3, TrafficAxis::kPipeline);
  CHECK(crosses(fabric, pipeline, "node0/eth/nic0 -> eth/leaf0"));
  CHECK(crosses(fabric, pipeline, "eth/leaf0 -> node1/eth/nic0"));
  CHECK_FALSE(crosses(fabric, pipeline, "node0/nic3 -> leaf3"));
  for (const topology::Router::Axis axis : {topology::Router::Axis{}, topology::Router::Axis{TrafficAxis::kData}, topology::Router::Axis{TrafficAxis::kTensor}}) {
    const topology::Path other = two.router->path(3, 8 + 3, axis);
    CHECK(crosses(fabric, other, "node0/nic3 -> leaf3"));
    CHECK_FALSE(crosses(fabric, other, "node0/eth/nic0 -> eth/leaf0"));
  }
  CHECK(two.router->path(0, 5, TrafficAxis::kPipeline).kind == topology::PathKind::kNvlink);  // inside a node no network is needed
  CHECK(two.router->crossing(0, 8, TrafficAxis::kPipeline).ways.front().from_port == 8);      // the ninth NIC
}

// Four nodes, eight data-parallel groups of four (one a rail). All-gather of 1 GB: 3/4 GB leaves every rank. On rails of
// 48 GB/s 15.6 ms; on one port of 10 GB/s a node eight times 3/4 GB take 600 ms.
TEST_CASE("networks: gradients on rails, and all of them on one Ethernet port") {
  const TwoNetworks rails{4, {TrafficAxis::kPipeline}};
  const TwoNetworks port{4, {TrafficAxis::kData}};
  for (const bool fold : {true, false}) {
    CAPTURE(fold);
    const run::Result on_rails = run::simulate(all_gather(1_GB, 8, 4), rails.machine(), {.fold = fold});
    CHECK(on_rails.step.seconds() == doctest::Approx(0.75e9 / 48e9).epsilon(1e-2));
    const run::Result on_port = run::simulate(all_gather(1_GB, 8, 4), port.machine(), {.fold = fold});
    CHECK(on_rails.folded == fold);
    CHECK_FALSE(on_port.folded);  // four of the groups reach the port across the sockets
    CHECK(on_port.step.seconds() == doctest::Approx(8 * 0.75e9 / 10e9).epsilon(1e-3));
    CHECK(on_port.busiest_links.front().name.find("eth/") != std::string::npos);
  }
}

// Hashed paths over single links: one leaf, one path, so the same time.
TEST_CASE("networks: paths by flow on the second network") {
  const TwoNetworks port{4, {TrafficAxis::kData}};
  run::Machine machine = port.machine();
  machine.paths.policy = network::PathPolicy::kEcmp;
  const run::Result result = run::simulate(all_gather(1_GB, 8, 4), machine, {.fold = false});
  CHECK(result.step.seconds() == doctest::Approx(8 * 0.75e9 / 10e9).epsilon(1e-3));
}

// A step over this Ethernet is said to cost 100 us more: NCCL's ring of four hosts has 3 of them, and Simple flushes (twice).
TEST_CASE("networks: latencies are those of the network that is used") {
  const TwoNetworks port{4, {TrafficAxis::kData}};
  run::Machine machine = port.machine();
  machine.side_networks = {machine.collectives.network};
  const double before = run::simulate(all_gather(1_GB, 8, 4), machine, {.fold = true}).step.seconds();
  machine.side_networks[0].latency_s = 100e-6;
  CHECK(run::simulate(all_gather(1_GB, 8, 4), machine, {.fold = true}).step.seconds() - before == doctest::Approx(3 * 2 * 100e-6).epsilon(1e-6));
  run::Machine slow_rails = port.machine();
  slow_rails.side_networks = {slow_rails.collectives.network};
  slow_rails.collectives.network.latency_s = 1.0;  // not used
  CHECK(run::simulate(all_gather(1_GB, 8, 4), slow_rails, {.fold = true}).step.seconds() == doctest::Approx(before));
}

// Nodes 0 and 1 on one network, 2 and 3 on another, all on a common one.
TEST_CASE("networks: nodes on two networks meet over the common one") {
  topology::ClusterHardware box = topology::test::nvswitch_box();
  box.side_networks = {{.nic = box.nic}, {.nic = box.nic}};
  box.nic = ethernet();
  scenario::Cluster cluster = topology::test::cluster_of(4, "clos");
  cluster.fabric->nics_per_node = 1;
  cluster.networks = {beside("ib", {}, "0-1", "rail-clos", 8), beside("roce", {}, "2,3", "rail-clos", 4)};
  const topology::Fabric fabric = topology::build_fabric(box, cluster);
  const topology::Router router{fabric};
  CHECK(router.network_between(0, 8, TrafficAxis::kData) == 1);
  CHECK(router.network_between(16, 24, std::nullopt) == 2);
  CHECK(router.network_between(8, 16, TrafficAxis::kData) == 0);
  CHECK(crosses(fabric, router.path(2, 8 + 2), "node0/ib/nic2 -> ib/leaf2"));
  CHECK(crosses(fabric, router.path(16 + 2, 24 + 2), "node2/roce/nic1 -> roce/leaf1"));
  CHECK(crosses(fabric, router.path(2, 16 + 2), "node0/nic0 -> leaf0"));
  // Cards: one Ethernet port each, eight on two nodes, four on the others.
  const topology::Inventory inventory = topology::take_inventory(fabric);
  for (const topology::DeviceCount& row : inventory.devices) {
    if (row.kind == topology::DeviceKind::kNic) CHECK(row.count == 4 + 2 * 8 + 2 * 4);
    if (row.kind == topology::DeviceKind::kLeaf) CHECK(row.count == 1 + 8 + 4);
  }
  std::int64_t pcie_to_nic = 0;
  for (const topology::LinkCount& row : inventory.links)
    if (row.kind == topology::LinkKind::kPcie && row.to == topology::DeviceKind::kNic) pcie_to_nic += row.count;
  CHECK(pcie_to_nic == 28);
  CHECK(topology::bisection(fabric, fabric.networks[1])->capacity.si() == doctest::Approx(8 * 48e9));
  CHECK(topology::bisection(fabric)->capacity.si() == doctest::Approx(2 * 10e9));

  // A group on the first two nodes has the first network's latencies, one on all four the common one's.
  gpu::GpuModel model{gpu::testing::round_gpu()};
  const run::Machine machine{.fabric = fabric, .router = router, .gpu = model, .collectives = {}, .forced = {}, .communicator_bytes = Bytes{0},
                             .communication_launch = Duration::microseconds(5), .paths = {}, .transports = {}, .side_networks = {}};
  CHECK(run::GroupTable{all_gather(1_GB, 8, 2), machine}.communicator(0).network == 1);
  CHECK(run::GroupTable{all_gather(1_GB, 8, 4), machine}.communicator(0).network == 0);
  // And the NICs beside its GPUs: of one GPU a host its rail's, of all eight every rail's, of the common network the one port.
  CHECK(run::GroupTable{all_gather(1_GB, 8, 2), machine}.communicator(0).layout.nics == 1);
  std::vector<RankId> two_hosts;
  for (std::uint32_t rank = 0; rank < 16; ++rank) two_hosts.emplace_back(rank);
  CHECK(run::nics_beside(two_hosts, fabric, 1) == 8);
  CHECK(run::nics_beside(two_hosts, fabric, 0) == 1);
  CHECK(run::nics_beside({RankId{3U}, RankId{11U}}, fabric, 1) == 1);
  CHECK(run::nics_beside({RankId{3U}, RankId{5U}, RankId{11U}, RankId{13U}}, fabric, 1) == 2);
}

TEST_CASE("networks: names of links, for failures and people") {
  const TwoNetworks two{4, {TrafficAxis::kPipeline}};
  const std::vector<scenario::Failure> failures{{.link = "node1/eth/nic0 <-> eth/leaf0", .switch_name = {}, .at = {}, .fraction = 0.5}};
  const auto changes = topology::find_failures(*two.fabric, failures);
  REQUIRE(changes.size() == 1);
  CHECK(changes[0].links.size() == 2);
  std::vector<std::string> what;
  for (const topology::PathExample& example : topology::example_paths(*two.fabric, *two.router)) what.push_back(example.what);
  CHECK(std::find(what.begin(), what.end(), "eth: same leaf") != what.end());
  CHECK(topology::network_text(*two.fabric, 1, "test-ethernet") == "eth for pp: 1 x test-ethernet a node");
}

TEST_CASE("networks: one written out beside a preset") {
  topology::ClusterHardware box = topology::test::nvswitch_box();
  box.side_networks = {{.nic = ethernet()}};
  scenario::Cluster cluster = topology::test::cluster_of(4, "rail-clos");
  scenario::SideNetwork storage = beside("storage", {TrafficAxis::kData}, "1-3");
  storage.fabric.network = scenario::Network{.hosts = {}, .switches = {"a", "b"},
                                             .links = {{.from = "node[1-2]", .to = "a", .count = 1, .rate = {}, .latency = {}},
                                                       {.from = "node3", .to = "b", .count = 1, .rate = {}, .latency = {}},
                                                       {.from = "a", .to = "b", .count = 2, .rate = {}, .latency = {}}}};
  cluster.networks = {storage};
  const topology::Fabric fabric = topology::build_fabric(box, cluster);
  const topology::Router router{fabric};
  CHECK(crosses(fabric, router.path(8, 24, TrafficAxis::kData), "storage/a -> storage/b"));
  CHECK(crosses(fabric, router.path(0, 24, TrafficAxis::kData), "node0/nic0 -> leaf0"));  // node 0 is not on it
  topology::NextHops hops{fabric};
  const auto way = router.crossing(8, 24, TrafficAxis::kData).ways.front();
  std::vector<topology::NextHops::Step> steps;
  hops.find(hops.source(way.from_port), way.to_port, steps);
  REQUIRE(steps.size() == 1);
  hops.find(steps[0].to, way.to_port, steps);
  CHECK(steps.size() == 2);  // the two parallel links from a to b
}

TEST_CASE("networks: what cannot be is refused at its key") {
  const auto with = [](std::vector<scenario::SideNetwork> networks) {
    scenario::Cluster cluster = topology::test::cluster_of(4, "rail-clos");
    cluster.networks = std::move(networks);
    return refusal(cluster);
  };
  const auto says = [](const std::string& text, const std::string& part) {
    CHECK_MESSAGE(text.find(part) != std::string::npos, text);
  };
  says(with({beside("a/b", {TrafficAxis::kData}, {})}), "cluster.networks[0].name: a name that would be taken for something else");
  says(with({beside("a", {TrafficAxis::kData}, {}), beside("a", {TrafficAxis::kPipeline}, {})}), "cluster.networks[1].name: a second 'a'");
  says(with({beside("a", {}, {})}), "cluster.networks[0]: says neither what it carries nor which nodes it joins");
  scenario::SideNetwork hashed = beside("a", {TrafficAxis::kData}, {});
  hashed.fabric.routing.policy = scenario::RoutingPolicy::kEcmp;
  says(with({hashed}), "cluster.networks[0].fabric.routing: stands in cluster.fabric");
  says(with({beside("a", {}, "0-4")}), "cluster.networks[0].nodes: no node 4");
  says(with({beside("a", {}, "0-")}), "cluster.networks[0].nodes: not a list of nodes");
  says(with({beside("a", {}, "1,1")}), "cluster.networks[0].nodes: node 1 twice");
  says(with({beside("a", {}, "1")}), "cluster.networks[0].nodes: fewer than two nodes");
  says(with({beside("a", {TrafficAxis::kData}, {}), beside("b", {TrafficAxis::kData}, "0-2")}),
       "cluster.networks[1].carries: dp between nodes 0 and 1 goes over 'a' as well");
  says(with({beside("a", {}, "0-2"), beside("b", {}, "1-3")}), "cluster.networks[1].nodes: nodes 1 and 2 are on 'a' as well");
  CHECK(with({beside("a", {TrafficAxis::kData}, "0-1"), beside("b", {TrafficAxis::kData}, "2-3")}) == "accepted");
  says(with({beside("a", {TrafficAxis::kData}, {}, "clso")}), "cluster.networks[0].fabric.preset: unknown fabric");
  says(with({beside("a", {TrafficAxis::kData}, {}, "none")}), "cluster.networks[0].fabric.preset: no network");
  scenario::SideNetwork torus = beside("a", {TrafficAxis::kData}, "0-2", "torus");
  torus.fabric.shape = {2, 2};
  says(with({torus}), "expected: 3 = nodes of this network");
}

TEST_SUITE_END();
