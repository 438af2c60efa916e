// Transports on fabrics: which links sockets use, and what holds messages and collectives back, worked out by hand.
#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "sim/run/flow_run.hpp"
#include "sim/run/transport_use.hpp"
#include "tests/support/run_fixture.hpp"

using namespace stepcast;
using namespace stepcast::run;
using stepcast::topology::test::share_of;
using doctest::Approx;

TEST_SUITE_BEGIN("unit");

namespace {

// Two boxes of eight GPUs with one network card each (48 GB/s). `core_rate` x 16 cores, eight on either CPU socket.
struct TcpPair {
  explicit TcpPair(double core_rate, std::int64_t threads = 0) : fabric{build(core_rate)}, router{fabric} {
    transports.network = {.per_message = Duration::microseconds(5), .chunk = Bytes{0}, .copies = 2,
                          .sockets = network::Sockets{.core_rate = core_rate, .connection_rate = 1e12, .threads = threads, .sockets_per_thread = 1, .channels = 2}};
  }
  static topology::Fabric build(double core_rate) {
    topology::ClusterHardware box = topology::test::nvswitch_box();
    box.nic.transport = topology::Transport::kTcp;
    box.socket_rate = Bandwidth::from_si(16 * core_rate);
    scenario::Cluster cluster = topology::test::cluster_of(2, "clos");
    cluster.fabric->nics_per_node = 1;
    return topology::build_fabric(box, cluster);
  }
  std::vector<double> ends(const std::vector<FlowSpec>& flows) const {
    LinkPaths paths{fabric, rules};
    std::vector<double> seconds;
    for (const TimePoint end : run_flows(router, paths, flows, transports).end) seconds.push_back((end - TimePoint{}).seconds());
    return seconds;
  }
  [[nodiscard]] Machine machine(const gpu::GpuModel& gpu) const {
    return {.fabric = fabric, .router = router, .gpu = gpu, .collectives = {}, .forced = {}, .communicator_bytes = Bytes{0},
            .communication_launch = Duration{}, .paths = {}, .transports = transports};
  }

  topology::Fabric fabric;
  topology::Router router;
  PathRules rules;
  network::TransportCosts transports;
};

plan::Plan all_reduces(int streams, Bytes bytes) {
  plan::ProgramBuilder b{"collectives"};
  for (int s = 0; s < streams; ++s) {
    const plan::StreamId stream = b.stream(s == 0 ? plan::StreamKind::kCompute : plan::StreamKind::kCommunication, s == 0 ? "a" : "b");
    b.collective(stream, "all-reduce", {.kind = plan::CollectiveKind::kAllReduce, .group = plan::GroupId{0u}, .bytes = bytes, .dtype = plan::Dtype::kFp32,
                                        .purpose = plan::Purpose::kData});
  }
  plan::Plan plan;
  plan.name = "test";
  plan.degrees[plan::Axis::kData] = 16;
  plan.groups.push_back({.name = "all", .axes = {plan::Axis::kData}, .stages = {}, .split = {}});
  plan.programs.push_back(std::move(b).finish());
  plan.program_of_stage = {plan::ProgramId{0u}};
  return plan;
}

}  // namespace

// Written to memory, read and written back by a core, read by the card.
TEST_CASE("transport use: sockets cross host memory twice either way and the cores once") {
  const TcpPair pair{2e9};
  const topology::Path path = pair.router.path(0, 8);
  for (const char* host : {"node0", "node1"}) {
    CAPTURE(host);
    const std::string h = host;
    CHECK(share_of(pair.fabric, path, h + "/root0 -> " + h + "/memory0") == 2.0);
    CHECK(share_of(pair.fabric, path, h + "/memory0 -> " + h + "/root0") == 2.0);
    CHECK(share_of(pair.fabric, path, h + "/root0 -> " + h + "/cpu0") == 1.0);
  }
}

TEST_CASE("transport use: a copied path without sockets crosses memory once and no core") {
  topology::ClusterHardware box = topology::test::nvswitch_box();
  box.gpudirect = false;
  const topology::Fabric fabric = topology::build_fabric(box, topology::test::cluster_of(2, "clos"));
  const topology::Path path = topology::Router{fabric}.path(0, 8);
  CHECK(share_of(fabric, path, "node0/root0 -> node0/memory0") == 1.0);
  CHECK(share_of(fabric, path, "node1/memory0 -> node1/root0") == 1.0);
  CHECK(fabric.host.cpu_of_gpu.empty());
}

// 20 MB at 2 GB/s of one core: 10 ms, 5 us before. Two GPUs have a process each: neither slows the other.
TEST_CASE("transport use: a flow over sockets moves what one core does") {
  const TcpPair pair{2e9};
  const double latency = pair.router.path(0, 8).latency.seconds();
  const auto alone = pair.ends({{0, 8, Bytes{20'000'000}, {}}});
  const auto both = pair.ends({{0, 8, Bytes{20'000'000}, {}}, {1, 9, Bytes{20'000'000}, {}}});
  CHECK(alone[0] == Approx(latency + 5e-6 + 10e-3));
  CHECK(both == std::vector{alone[0], alone[0]});
}

// A chunk of 100 kB is copied at both ends over PCIe, however slow the card is.
TEST_CASE("transport use: copies through host memory take their time inside the host, not the network's") {
  TcpPair pair{2e9};
  const double without = pair.ends({{0, 8, Bytes{20'000'000}, {}}})[0];
  pair.transports.network.chunk = Bytes{100'000};
  const double with = pair.ends({{0, 8, Bytes{20'000'000}, {}}})[0];
  double slowest = 1e30;
  for (const auto& share : pair.router.path(0, 8).shares) {
    const topology::Bundle& bundle = pair.fabric.bundles[share.bundle];
    const topology::LinkKind kind = pair.fabric.links[bundle.links.front().index()].kind;
    if (kind == topology::LinkKind::kPcie || kind == topology::LinkKind::kMemory || kind == topology::LinkKind::kSocket) slowest = std::min(slowest, bundle.capacity.si() / share.share);
  }
  CHECK(slowest > 10e9);
  CHECK(with - without == Approx(2 * 100e3 / slowest).epsilon(1e-3));
}

// 8 cores of the socket move 0.8 GB/s; one flow with 4 threads takes 0.4, two together all of it, four half as much each.
TEST_CASE("transport use: the cores of a socket are shared by all its traffic") {
  const TcpPair pair{0.1e9, 4};
  std::vector<FlowSpec> flows;
  for (std::uint32_t g = 0; g < 4; ++g) flows.push_back({g, 8 + g, Bytes{40'000'000}, {}});
  const double latency = pair.router.path(0, 8).latency.seconds() + 5e-6;
  CHECK(pair.ends({flows[0]})[0] == Approx(latency + 0.1));
  CHECK(pair.ends({flows[0], flows[1]})[0] == Approx(latency + 0.1));
  CHECK(pair.ends(flows)[3] == Approx(latency + 0.2));
}

// A ring of 16 ranks moves 2 x 15/16 of the bytes, all of it through the one card's progress thread: 2 GB/s. 160 MB: 150 ms.
TEST_CASE("transport use: a ring over one card moves what one progress thread does, alone or with another of its communicator") {
  const TcpPair pair{2e9};
  const gpu::GpuModel gpu{gpu::testing::round_gpu()};
  Machine machine = pair.machine(gpu);
  machine.forced = {.algorithm = collective::Algorithm::kRing, .protocol = collective::Protocol::kSimple};
  for (const bool fold : {true, false}) {
    CAPTURE(fold);
    const Result one = simulate(all_reduces(1, Bytes{160'000'000}), machine, {.fold = fold});
    const Result two = simulate(all_reduces(2, Bytes{160'000'000}), machine, {.fold = fold});
    CHECK(one.step.seconds() == Approx(0.150).epsilon(0.01));
    CHECK(two.step.seconds() == Approx(0.300).epsilon(0.01));
    // 300 MB sent and 300 MB received by a host, its GPUs on two CPU sockets: 300 MB through the cores of either.
    CHECK(one.socket_time.seconds() == Approx(0.150).epsilon(1e-6));
  }
}

// Eight helpers for each of two connections: 32 GB/s; the card's 48 GB/s would allow more.
TEST_CASE("transport use: helper threads lift a collective's limit") {
  const TcpPair slow{2e9};
  const TcpPair fast{2e9, 8};
  const std::vector<collective::Member> members = [] {
    std::vector<collective::Member> list;
    for (std::uint32_t g = 0; g < 16; ++g) list.push_back({g, g / 8});
    return list;
  }();
  const auto edges = collective::edges_of(collective::Algorithm::kRing, members);
  const ThreadUse one = thread_use(edges, collective::Algorithm::kRing, slow.fabric, slow.transports);
  const ThreadUse many = thread_use(edges, collective::Algorithm::kRing, fast.fabric, fast.transports);
  CHECK(one.rate / one.coefficient == Approx(2e9));
  CHECK(many.rate / many.coefficient == Approx(32e9));
  CHECK(thread_use(edges, collective::Algorithm::kRing, slow.fabric, {}).coefficient == 0.0);
}
