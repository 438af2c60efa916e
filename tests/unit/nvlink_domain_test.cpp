// NVLink domains larger than a host: routing, collectives, folding, refusals.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "sim/base/diagnostic.hpp"
#include "sim/run/groups.hpp"
#include "tests/support/run_fixture.hpp"
#include "topologies/inventory.hpp"

using namespace stepcast;
using namespace stepcast::literals;
using namespace stepcast::run::testing;
using topology::PathKind;

TEST_SUITE_BEGIN("unit");

namespace {

plan::Plan all_gather(std::int32_t tp, std::int32_t dp, plan::Axis axis, Bytes bytes) {
  plan::ProgramBuilder b{"one"};
  const auto compute = b.stream(plan::StreamKind::kCompute, "compute");
  b.collective(compute, "gather", {.kind = plan::CollectiveKind::kAllGather, .group = plan::GroupId{0u}, .bytes = bytes,
                                   .purpose = plan::Purpose::kData});
  return one_program(std::move(b).finish(), tp, dp, {{.name = "g", .axes = {axis}, .stages = {}}});
}

double network_bytes(const run::Result& result) {
  double bytes = 0.0;
  for (const run::LinkLoad& load : result.busiest_links)
    if (load.name.find("/nic") != std::string::npos || load.name.find("leaf") != std::string::npos) bytes += load.carried.si();
  return bytes;
}

std::string refusal(const topology::ClusterHardware& box, const scenario::Cluster& cluster) {
  try {
    topology::build_fabric(box, cluster);
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

// Six hosts of eight GPUs in domains of three. GPU 5 and GPU 16 are on hosts 0 and 2: up and down one NVSwitch of
// 450 GB/s at 80 %, 1 us in all. GPU 24 is on host 3, in the second domain.
TEST_CASE("domain: hosts of one domain meet at its NVSwitch, others over the network") {
  const TestCluster cluster{6, "rail-clos", 1.0, 3};
  const topology::Fabric& fabric = cluster.fabric();
  const topology::Router router{fabric};
  const topology::Path inside = router.path(5, 16);
  CHECK(inside.kind == PathKind::kNvlink);
  CHECK(inside.latency == 1_us);
  CHECK(inside.switch_hops == 1);
  REQUIRE(inside.shares.size() == 2);
  CHECK(topology::bundle_name(fabric, inside.shares[0].bundle) == "node0/gpu5 -> domain0/nvswitch");
  CHECK(topology::bundle_name(fabric, inside.shares[1].bundle) == "domain0/nvswitch -> node2/gpu0");
  CHECK(fabric.bundles[inside.shares[0].bundle].capacity.si() == doctest::Approx(360e9));
  CHECK(router.crossing(5, 16).ways.empty());
  CHECK(router.path_through_nic(5, 16, 3).kind == PathKind::kNvlink);
  CHECK(router.path(0, 7).kind == PathKind::kNvlink);  // within a host, too
  CHECK(router.path(16, 24).kind == PathKind::kNetwork);
  CHECK(router.path(24, 47).kind == PathKind::kNvlink);
  CHECK(router.path(7, 7).kind == PathKind::kSelf);
}

// Each host keeps its own CPUs, memory, PCIe and NICs; a domain adds a switch, and each GPU one link to it.
TEST_CASE("domain: what a cluster of domains consists of") {
  const auto count = [](const topology::Fabric& fabric, topology::DeviceKind kind) {
    return std::count_if(fabric.devices.begin(), fabric.devices.end(), [&](const topology::Device& d) { return d.kind == kind; });
  };
  const TestCluster cluster{6, "rail-clos", 1.0, 3};
  CHECK(count(cluster.fabric(), topology::DeviceKind::kNvswitch) == 2);
  CHECK(count(cluster.fabric(), topology::DeviceKind::kNic) == 48);
  CHECK(count(cluster.fabric(), topology::DeviceKind::kHostMemory) == 12);
  for (const topology::LinkCount& row : topology::take_inventory(cluster.fabric()).links)
    if (row.kind == topology::LinkKind::kNvlink) CHECK(row.count == 48);
  const auto paths = topology::example_paths(cluster.fabric(), topology::Router{cluster.fabric()});
  REQUIRE(paths.size() >= 3);
  CHECK(paths[1].what == "same NVLink domain");
  CHECK(paths[1].to == 8);
  CHECK(paths[2].to == 24);  // the first that needs the network
}

// All-gather of 16 GB on the 16 GPUs of a domain of two hosts: 15/16 of it over NVLink at 360 GB/s. NCCL sees one
// machine, so Simple costs 8.4 us + 15 steps of 3.4 us and no step over the network.
TEST_CASE("domain: a collective inside a domain runs at NVLink's rate and leaves the NICs alone") {
  const TestCluster cluster{2, "rail-clos", 1.0, 2};
  for (const bool fold : {false, true}) {
    CAPTURE(fold);
    const run::Result result = run::simulate(all_gather(16, 1, plan::Axis::kTensor, 16_GB), cluster.machine(), {.fold = fold});
    CHECK(result.folded == fold);
    CHECK(result.step.seconds() == doctest::Approx(5e-6 + 8.4e-6 + 15 * 3.4e-6 + 15e9 / 360e9).epsilon(1e-9));
    CHECK(network_bytes(result) == 0.0);
  }
}

// Domains of two hosts; each data-parallel group has a GPU of either domain: half of 8 GB over that GPU's NIC of 50 GB/s
// at 96 %.
TEST_CASE("domain: a collective between domains runs at the NICs' rate") {
  const TestCluster cluster{4, "rail-clos", 1.0, 2};
  const plan::Plan plan = all_gather(16, 2, plan::Axis::kData, 8_GB);
  const run::GroupTable groups{plan, cluster.machine()};
  CHECK(groups.communicator(0).layout.hosts == 2);
  CHECK(groups.communicator(0).layout.nvswitch);
  const run::Result result = run::simulate(plan, cluster.machine(), {.fold = true});
  CHECK(result.folded);
  CHECK(result.step.seconds() == doctest::Approx(4e9 / 48e9).epsilon(1e-3));  // latency: 40 us
  CHECK(network_bytes(result) > 0.0);
}

// Send and receive from every GPU to its neighbour of the next host: inside the domain NVLink alone.
TEST_CASE("domain: messages between hosts of a domain do not touch the network") {
  const TestCluster cluster{2, "rail-clos", 1.0, 2};
  const topology::Router router{cluster.fabric()};
  for (std::uint32_t gpu = 0; gpu < 8; ++gpu) {
    for (const topology::Path::Share& share : router.path(gpu, gpu + 8).shares) {
      const topology::Link& link = cluster.fabric().links[cluster.fabric().bundles[share.bundle].links.front().index()];
      CHECK(link.kind == topology::LinkKind::kNvlink);
    }
  }
}

TEST_CASE("domain: one without a network, and those that cannot be") {
  topology::ClusterHardware box = topology::test::nvswitch_box();
  box.nvlink_domain = 3;
  scenario::Cluster cluster = topology::test::cluster_of(3, "none");
  CHECK(topology::build_fabric(box, cluster).ports.empty());
  CHECK(topology::Router{topology::build_fabric(box, cluster)}.path(0, 23).kind == PathKind::kNvlink);
  cluster.fabric.reset();
  CHECK(refusal(box, cluster) == "accepted");
  // Two hosts of a rack for three: a smaller domain, not an error.
  CHECK(topology::build_fabric(box, topology::test::cluster_of(2, "clos")).gpus_per_domain() == 16);

  const std::string uneven = refusal(box, topology::test::cluster_of(8, "clos"));
  CHECK_MESSAGE(uneven.find("cluster.nodes: 8 nodes do not fill NVLink domains of 3") != std::string::npos, uneven);
  CHECK_MESSAGE(uneven.find("cluster.nvlink_domain: 2 takes 2 nodes of each rack") != std::string::npos, uneven);
  scenario::Cluster chosen = topology::test::cluster_of(8, "clos");
  chosen.nvlink_domain = 3;
  CHECK(refusal(box, chosen).find("cluster.nvlink_domain: 8 nodes do not fill") != std::string::npos);

  topology::ClusterHardware pcie = topology::test::pcie_box();
  pcie.nvlink_domain = 2;
  CHECK(refusal(pcie, topology::test::cluster_of(2, "clos")).find("no NVSwitch that several nodes could share") != std::string::npos);
}

TEST_SUITE_END();
