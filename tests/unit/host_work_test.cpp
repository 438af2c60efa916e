// Copies between a GPU and its host, and work of the host's cores, on links of round numbers: PCIe 55 GB/s, memory of 200 GB/s a socket.
#include <doctest/doctest.h>

#include "sim/run/host_work.hpp"
#include "tests/support/run_fixture.hpp"

using namespace stepcast;
using namespace stepcast::literals;
using namespace stepcast::run::testing;
using plan::CopyKind;
using plan::ProgramBuilder;
using plan::StreamKind;

TEST_SUITE_BEGIN("unit");

namespace {

constexpr std::int64_t kBytes = 550'000'000;  // 10 ms at 55 GB/s

plan::Program copies(bool in, bool out) {
  ProgramBuilder b{"copies"};
  const auto compute = b.stream(StreamKind::kCompute, "compute");
  if (in) b.copy(b.stream(StreamKind::kHostToDevice, "in"), "in", CopyKind::kHostToDevice, Bytes{kBytes});
  if (out) b.copy(b.stream(StreamKind::kDeviceToHost, "out"), "out", CopyKind::kDeviceToHost, Bytes{kBytes});
  for (const auto& [name, used] : {std::pair{"in", in}, std::pair{"out", out}})
    if (used) b.order(b.stream(std::string_view{name} == "in" ? StreamKind::kHostToDevice : StreamKind::kDeviceToHost, name), compute);
  return std::move(b).finish();
}

plan::Program cores(std::int64_t bytes) {
  ProgramBuilder b{"cores"};
  const auto compute = b.stream(StreamKind::kCompute, "compute");
  const auto host = b.stream(StreamKind::kHost, "host");
  b.host_compute(host, "adam", Flops{}, Bytes{bytes});
  b.order(host, compute);
  return std::move(b).finish();
}

run::Result simulate(plan::Program program, std::int32_t gpus, const topology::ClusterHardware& box, bool fold) {
  const topology::Fabric fabric = topology::build_fabric(box, topology::test::cluster_of(1, "rail-clos"));
  const topology::Router router{fabric};
  const gpu::GpuModel model{gpu::testing::round_gpu()};
  run::Machine machine{.fabric = fabric, .router = router, .gpu = model, .collectives = {}, .forced = {}, .communicator_bytes = Bytes{0}, .communication_launch = {}};
  return run::simulate(one_program(std::move(program), 1, gpus), machine, {.fold = fold});
}

}  // namespace

// 2.5 us and 550 MB over one x16 link: 10.0025 ms, in either direction and both at once, since the link has two. All of it is waited for.
TEST_CASE("host work: a copy takes its latency and its bytes over PCIe") {
  for (const auto& [in, out] : {std::pair{true, false}, std::pair{false, true}, std::pair{true, true}}) {
    CAPTURE(in);
    CAPTURE(out);
    const run::Result result = simulate(copies(in, out), 1, topology::test::nvswitch_box(), false);
    CHECK(result.step == run::kCopyLatency + 10000_us);
    CHECK(result.breakdown.exposed_offload == result.step);
  }
}

// Two GPUs behind one switch share its way up: twice the time. Four on two switches of two sockets do not share more than that. Folded or not.
TEST_CASE("host work: GPUs behind a PCIe switch share its uplink") {
  for (const bool fold : {false, true}) {
    CAPTURE(fold);
    CHECK(simulate(copies(true, false), 2, topology::test::pcie_box(), fold).step == run::kCopyLatency + 20000_us);
    CHECK(simulate(copies(true, false), 4, topology::test::pcie_box(), fold).step == run::kCopyLatency + 20000_us);
  }
}

// A socket's 200 GB/s: eight GPUs, four a socket, copy at 50 GB/s each where memory and not PCIe is what they share.
TEST_CASE("host work: copies of a socket's GPUs share its memory") {
  CHECK(simulate(copies(true, false), 8, topology::test::nvswitch_box(), true).step == run::kCopyLatency + 11000_us);
}

// Half of 200 GB/s: 1 GB in 10 ms; two GPUs of a socket, 20 ms.
TEST_CASE("host work: cores draw a share of the memory's bandwidth, which workers of a socket share") {
  CHECK(simulate(cores(1'000'000'000), 1, topology::test::nvswitch_box(), false).step == run::kCopyLatency + 10000_us);
  CHECK(simulate(cores(1'000'000'000), 2, topology::test::nvswitch_box(), true).step == run::kCopyLatency + 20000_us);
}

// Two kernels for each of eight ranks: 16 calls of 7.5 us for the host before each of two reductions is issued, 16 kernels before the last begins.
// All-gathers have none, but those of their own.
TEST_CASE("host work: a framework that lists each rank's part of the gradients") {
  const gpu::GpuModel model{gpu::testing::round_gpu()};
  const auto step = [&](plan::CollectiveKind kind, std::int64_t copies_per_shard, std::int64_t copies_per_gathered_shard = 0) {
    ProgramBuilder b{"lists"};
    const auto compute = b.stream(StreamKind::kCompute, "compute");
    for (int i = 0; i < 2; ++i)
      b.collective(compute, "gradient", {.kind = kind, .group = plan::GroupId{0u}, .bytes = Bytes{8}, .purpose = plan::Purpose::kData});
    const topology::Fabric fabric = topology::build_fabric(topology::test::nvswitch_box(), topology::test::cluster_of(1, "rail-clos"));
    const topology::Router router{fabric};
    run::Machine machine{.fabric = fabric, .router = router, .gpu = model, .collectives = {}, .forced = {}, .communicator_bytes = Bytes{0}, .communication_launch = 100_us};
    machine.copies_per_shard = copies_per_shard;
    machine.copies_per_gathered_shard = copies_per_gathered_shard;
    return run::simulate(one_program(std::move(b).finish(), 1, 8, {{.name = "dp", .axes = {plan::Axis::kData}, .stages = {}}}), machine, {.fold = true}).step;
  };
  plan::Kernel kernels{.read = Bytes{16}, .written = Bytes{16}};
  kernels.launches = 16;
  CHECK(step(plan::CollectiveKind::kReduceScatter, 2) - step(plan::CollectiveKind::kReduceScatter, 0) == 7500_ns * 32 + model.time(kernels));
  CHECK(step(plan::CollectiveKind::kAllGather, 2) == step(plan::CollectiveKind::kAllGather, 0));
  CHECK(step(plan::CollectiveKind::kAllGather, 0, 2) - step(plan::CollectiveKind::kAllGather, 0) == 7500_ns * 32 + model.time(kernels));
}

TEST_CASE("host work: a kernel runs beside a copy") {
  ProgramBuilder b{"beside"};
  const auto compute = b.stream(StreamKind::kCompute, "compute");
  const auto in = b.stream(StreamKind::kHostToDevice, "in");
  b.copy(in, "in", CopyKind::kHostToDevice, Bytes{kBytes});
  b.compute(compute, "work", milliseconds_of_work(4));
  b.order(in, compute);
  const run::Result result = simulate(std::move(b).finish(), 1, topology::test::nvswitch_box(), false);
  CHECK(result.step == run::kCopyLatency + 10000_us);
  CHECK(result.breakdown.exposed_offload + result.breakdown.compute + result.breakdown.host_wait == result.step);
  CHECK(result.breakdown.compute > 4000_us);
}

TEST_SUITE_END();
