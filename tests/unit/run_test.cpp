#include <doctest/doctest.h>

#include "tests/support/run_fixture.hpp"

using namespace stepcast;
using namespace stepcast::literals;
using namespace stepcast::run::testing;
using plan::Axis;
using plan::ProgramBuilder;
using plan::Purpose;
using plan::StreamKind;

TEST_SUITE_BEGIN("unit");

namespace {

constexpr Duration kKernelCost = Duration::nanoseconds(1500);  // floor and gap
constexpr Duration kLaunch = Duration::microseconds(5);

run::Result simulate(const plan::Plan& plan, const TestCluster& cluster, bool fold = false) {
  return run::simulate(plan, cluster.machine(), {.fold = fold});
}

}  // namespace

// One stream, two kernels of 1 ms. The host needs 5 us before the first can start and is far ahead
// of the second: 5 us + 2 x (1 ms + 1.5 us).
TEST_CASE("run: kernels follow each other, the first waits for its launch") {
  ProgramBuilder b{"one"};
  const auto compute = b.stream(StreamKind::kCompute, "compute");
  b.compute(compute, "a", milliseconds_of_work(1));
  b.compute(compute, "b", milliseconds_of_work(1));
  const run::Result result = simulate(one_program(std::move(b).finish(), 1, 1), TestCluster{1});
  CHECK(result.step == kLaunch + (1000_us + kKernelCost) * 2);
  CHECK(result.breakdown.compute == (1000_us + kKernelCost) * 2);
  CHECK(result.breakdown.host_wait == kLaunch);
}

// Ten tiny kernels of 1.5 us each behind 5 us launches: the host is the bottleneck. The last one is
// issued at 50 us and ends 1.5 us later.
TEST_CASE("run: tiny kernels are bound by their launches") {
  ProgramBuilder b{"one"};
  const auto compute = b.stream(StreamKind::kCompute, "compute");
  for (int i = 0; i < 10; ++i) b.compute(compute, "a", milliseconds_of_work(0));
  const run::Result result = simulate(one_program(std::move(b).finish(), 1, 1), TestCluster{1});
  CHECK(result.step == kLaunch * 10 + kKernelCost);
  CHECK(result.breakdown.compute == kKernelCost * 10);
}

// Two halves, each a kernel of 1 ms and one launch of 5 us. Ahead of the device the host issues the second while the first runs;
// a host that waits in between issues it only then: 5 us more, with the device idle.
TEST_CASE("run: a host that waits for the device issues nothing meanwhile") {
  for (const bool waits : {false, true}) {
    CAPTURE(waits);
    ProgramBuilder b{"one"};
    const auto compute = b.stream(StreamKind::kCompute, "compute");
    const auto comm = b.stream(StreamKind::kCommunication, "comm");
    b.compute(compute, "a", milliseconds_of_work(1));
    if (waits) b.order(compute, b.stream(StreamKind::kIssue, "issue"));
    b.collective(comm, "sync", {.kind = plan::CollectiveKind::kAllReduce, .group = plan::GroupId{0u}, .bytes = Bytes{8}});
    b.compute(compute, "b", milliseconds_of_work(1));
    // One rank a group: the collective vanishes, with its launch.
    const plan::Plan plan = one_program(std::move(b).finish(), 1, 1, {{.name = "tp", .axes = {Axis::kTensor}, .stages = {}}});
    const run::Result result = simulate(plan, TestCluster{1});
    CHECK(result.step == kLaunch * (waits ? 2 : 1) + (1000_us + kKernelCost) * 2);
    CHECK(result.breakdown.host_wait == kLaunch * (waits ? 2 : 1));
    CHECK(result.breakdown.total() == result.step);
  }
}

// The communication stream's collective is listed after the wait: it begins 5 us after the kernel of 1 ms has ended, not at 10 us.
TEST_CASE("run: other streams are held up as well by a host that waits") {
  ProgramBuilder b{"one"};
  const auto compute = b.stream(StreamKind::kCompute, "compute");
  const auto comm = b.stream(StreamKind::kCommunication, "comm");
  b.compute(compute, "a", milliseconds_of_work(1));
  b.order(compute, b.stream(StreamKind::kIssue, "issue"));
  b.collective(comm, "gather", {.kind = plan::CollectiveKind::kAllGather, .group = plan::GroupId{0u}, .bytes = 8_GB, .purpose = Purpose::kTensor});
  b.order(comm, compute);
  const plan::Plan plan = one_program(std::move(b).finish(), 8, 1, {{.name = "tp", .axes = {Axis::kTensor}, .stages = {}}});
  for (const bool fold : {false, true}) {
    CAPTURE(fold);
    const run::Result result = simulate(plan, TestCluster{1}, fold);
    CHECK(result.step.seconds() == doctest::Approx(5e-6 + 1e-3 + 1.5e-6 + 5e-6 + 32.2e-6 + 7e9 / 360e9).epsilon(1e-9));
  }
}

// 20 us of host time before the first kernel of a step, 7 us more for each block that is computed again, however many kernels it has.
TEST_CASE("run: host time of a step and of blocks computed again") {
  ProgramBuilder b{"one"};
  const auto compute = b.stream(StreamKind::kCompute, "compute");
  for (const std::uint16_t layer : {std::uint16_t{0}, std::uint16_t{1}}) {
    b.context({plan::Stage::kRecompute, layer, 0});
    for (int kernel = 0; kernel < 3; ++kernel) b.compute(compute, "again", milliseconds_of_work(0));
    b.context({plan::Stage::kBackward, layer, 0});
    b.compute(compute, "backward", milliseconds_of_work(0));
  }
  const plan::Plan plan = one_program(std::move(b).finish(), 1, 1);
  const TestCluster cluster{1};
  run::Machine machine = cluster.machine();
  machine.host_step = 20_us;
  machine.host_recompute = 7_us;
  CHECK(run::simulate(plan, machine, {.fold = false}).step == 20_us + 7_us * 2 + kLaunch * 8 + kKernelCost);
}

// All-gather of 8 GB on the 8 GPUs of one host: ring traffic 7/8 * 8 GB = 7 GB over NVLink at
// 450 GB/s * 0.8 = 360 GB/s: 19.44 ms. Latency of Simple: 8.4 us + 7 steps * 3.4 us = 32.2 us. The
// message is long, so NCCL's rule takes Simple. It starts when issued, at 5 us.
TEST_CASE("run: a ring all-gather inside a host") {
  ProgramBuilder b{"one"};
  const auto compute = b.stream(StreamKind::kCompute, "compute");
  b.collective(compute, "gather", {.kind = plan::CollectiveKind::kAllGather, .group = plan::GroupId{0u}, .bytes = 8_GB,
                                   .purpose = Purpose::kTensor});
  const plan::Plan plan = one_program(std::move(b).finish(), 8, 1, {{.name = "tp", .axes = {Axis::kTensor}, .stages = {}}});
  for (const bool fold : {false, true}) {
    CAPTURE(fold);
    const run::Result result = simulate(plan, TestCluster{1}, fold);
    CHECK(result.folded == fold);
    CHECK(result.workers_simulated == (fold ? 1 : 8));
    CHECK(result.step.seconds() == doctest::Approx(5e-6 + 32.2e-6 + 7e9 / 360e9).epsilon(1e-9));
    CHECK(result.breakdown.exposed_tp.seconds() == doctest::Approx(32.2e-6 + 7e9 / 360e9).epsilon(1e-9));
  }
}

// Weights 9, 1, 1, ...: each of 8 ranks sends 9/16 of its 1.6 GB to rank 0, which gets 7 * 9/16 * 1.6 = 6.3 GB over NVLink's
// 360 GB/s: 17.5 ms. Even parts: 7/8 * 1.6 GB = 1.4 GB, 3.9 ms. Latency of grouped sends: 8.4 us.
TEST_CASE("run: an unequal all-to-all takes as long as its busiest GPU") {
  for (const bool skewed : {false, true}) {
    ProgramBuilder b{"one"};
    const auto compute = b.stream(StreamKind::kCompute, "compute");
    b.collective(compute, "dispatch", {.kind = plan::CollectiveKind::kAllToAll, .group = plan::GroupId{0u}, .bytes = Bytes{1'600'000'000},
                                       .purpose = Purpose::kExpert, .volumes = skewed ? std::optional{plan::VolumesId{0u}} : std::nullopt});
    plan::Plan plan = one_program(std::move(b).finish(), 8, 1, {{.name = "ep", .axes = {Axis::kTensor}, .stages = {}}});
    plan.volumes = {{.name = "hot", .form = plan::VolumeForm::kReceivers, .values = {9, 1, 1, 1, 1, 1, 1, 1}}};
    const double bytes = skewed ? 6.3e9 : 1.4e9;
    for (const bool fold : {false, true}) {
      CAPTURE(fold);
      CHECK(simulate(plan, TestCluster{1}, fold).step.seconds() == doctest::Approx(5e-6 + 8.4e-6 + bytes / 360e9).epsilon(1e-9));
    }
  }
}

// dp 2 over two hosts, one GPU each... tp 8 fills the hosts, so each of the 8 data groups has its own
// rail: all-reduce of 1 GB moves 2 (2-1)/2 * 1 GB = 1 GB over a NIC of 50 GB/s * 0.96 = 48 GB/s.
TEST_CASE("run: data-parallel rails do not disturb each other") {
  ProgramBuilder b{"one"};
  const auto compute = b.stream(StreamKind::kCompute, "compute");
  b.collective(compute, "sync", {.kind = plan::CollectiveKind::kAllReduce, .group = plan::GroupId{0u}, .bytes = 1_GB,
                                 .purpose = Purpose::kData});
  const plan::Plan plan = one_program(std::move(b).finish(), 8, 2, {{.name = "dp", .axes = {Axis::kData}, .stages = {}}});
  const run::Result result = simulate(plan, TestCluster{2}, true);
  CHECK(result.folded);
  CHECK(result.breakdown.exposed_dp.seconds() == doctest::Approx(1e9 / 48e9).epsilon(2e-3));  // latency: 36 us
}

// The gradient bucket of 1 GB is ready after the first kernel and is reduced beside the second (30 ms),
// which hides all of it: 36 us + 1 GB / 48 GB/s = 20.87 ms. Meanwhile it takes 2.5 * 48 of the memory's 1000 GB/s, so that the
// kernel is at 0.88 of its pace and ends 0.12 * 20.87 ms later.
TEST_CASE("run: an overlapped reduction hides, and slows what hides it") {
  ProgramBuilder b{"one"};
  const auto compute = b.stream(StreamKind::kCompute, "compute");
  const auto dp = b.stream(StreamKind::kCommunication, "dp");
  b.compute(compute, "backward 1", milliseconds_of_work(1));
  b.order(compute, dp);
  b.collective(dp, "sync", {.kind = plan::CollectiveKind::kAllReduce, .group = plan::GroupId{0u}, .bytes = 1_GB,
                            .purpose = Purpose::kData});
  b.compute(compute, "backward 2", milliseconds_of_work(30));
  b.order(dp, compute);
  b.compute(compute, "optimizer", milliseconds_of_work(1));
  const plan::Plan plan = one_program(std::move(b).finish(), 8, 2, {{.name = "dp", .axes = {Axis::kData}, .stages = {}}});
  for (const bool fold : {false, true}) {
    CAPTURE(fold);
    const run::Result result = simulate(plan, TestCluster{2}, fold);
    CHECK(result.breakdown.exposed_dp == Duration{});
    const double alone = (kLaunch + 32000_us + kKernelCost * 3).seconds();
    CHECK(result.step.seconds() == doctest::Approx(alone + 0.12 * (36e-6 + 1e9 / 48e9)).epsilon(1e-4));
    CHECK(result.breakdown.total() == result.step);
  }
}

// Two buckets of 0.24 GB (5 ms each) one after the other beside 30 ms of kernels: the second begins when the first ends, in the
// middle of the chain, and slows it as well.
TEST_CASE("run: a collective that begins inside a chain of kernels slows the rest of it") {
  const auto step = [](int buckets) {
    ProgramBuilder b{"one"};
    const auto compute = b.stream(StreamKind::kCompute, "compute");
    const auto dp = b.stream(StreamKind::kCommunication, "dp");
    b.compute(compute, "backward 1", milliseconds_of_work(1));
    b.order(compute, dp);
    for (int i = 0; i < buckets; ++i)
      b.collective(dp, "sync", {.kind = plan::CollectiveKind::kAllReduce, .group = plan::GroupId{0u}, .bytes = Bytes{240'000'000}, .purpose = Purpose::kData});
    b.compute(compute, "backward 2", milliseconds_of_work(30));
    b.order(dp, compute);
    const plan::Plan plan = one_program(std::move(b).finish(), 8, 2, {{.name = "dp", .axes = {Axis::kData}, .stages = {}}});
    return simulate(plan, TestCluster{2}).step.seconds();
  };
  const double none = step(0);
  CHECK(step(1) > none);
  CHECK(step(2) - none == doctest::Approx(2 * (step(1) - none)).epsilon(0.01));
}

namespace {

// Two stages; the first computes 2 ms and sends 48 MB, the second receives it and computes 1 ms.
plan::Plan two_stages(std::int32_t tp) {
  plan::Plan plan;
  plan.name = "pipeline";
  plan.degrees[Axis::kPipeline] = 2;
  plan.degrees[Axis::kTensor] = tp;
  ProgramBuilder first{"stage 0"};
  auto compute = first.stream(StreamKind::kCompute, "compute");
  const auto send = first.stream(StreamKind::kCommunication, "pp.send");
  first.compute(compute, "forward 1", milliseconds_of_work(1));
  first.compute(compute, "forward 2", milliseconds_of_work(1));
  first.order(compute, send);
  first.send(send, "send", 1, Bytes{48'000'000});
  ProgramBuilder second{"stage 1"};
  compute = second.stream(StreamKind::kCompute, "compute");
  const auto recv = second.stream(StreamKind::kCommunication, "pp.recv");
  second.recv(recv, "recv", 0, Bytes{48'000'000});
  second.order(recv, compute);
  second.compute(compute, "forward", milliseconds_of_work(1));
  plan.programs.push_back(std::move(first).finish());
  plan.programs.push_back(std::move(second).finish());
  plan.program_of_stage = {plan::ProgramId{0u}, plan::ProgramId{1u}};
  return plan;
}

}  // namespace

// tp 8: the stages sit on different hosts. 48 MB at 48 GB/s is 1 ms. The second stage waits for
// stage 0 (launch 5 us, two kernels of 1 ms): bubble, from its start to 2.008 ms; then the message moves:
// 8.4 us + path latency + 1 ms exposed; then 1 ms of its own.
TEST_CASE("run: waiting for a sender is bubble, the transfer is exposed communication") {
  const run::Result result = simulate(two_stages(8), TestCluster{2});
  CHECK(result.critical_worker == RankId{8u});
  CHECK(result.breakdown.bubble == kLaunch + (1000_us + kKernelCost) * 2);
  CHECK(result.breakdown.exposed_pp > 1008_us);
  CHECK(result.breakdown.exposed_pp < 1015_us);
  CHECK(result.breakdown.compute == 1000_us + kKernelCost);
  CHECK(result.breakdown.total() == result.step);
}

TEST_CASE("run: folded and unfolded pipelines agree") {
  const run::Result all = simulate(two_stages(8), TestCluster{2}, false);
  const run::Result folded = simulate(two_stages(8), TestCluster{2}, true);
  CHECK(folded.folded);
  CHECK(folded.workers_simulated == 2);
  CHECK(all.workers_simulated == 16);
  CHECK(folded.step == all.step);
  CHECK(folded.breakdown.bubble == all.breakdown.bubble);
}

// Clos with all NICs of a host on one leaf, 4 hosts a leaf, 8:1 oversubscribed. dp 8 over 8 hosts in
// rank order: a ring has two edges between the leaves, one each way; 8 rings share an up-link
// capacity of 32/8 ports = 4 * 48 GB/s, so each gets 24 GB/s: half a NIC.
TEST_CASE("run: folded rings share an oversubscribed leaf as unfolded ones do") {
  ProgramBuilder b{"one"};
  const auto compute = b.stream(StreamKind::kCompute, "compute");
  b.collective(compute, "sync", {.kind = plan::CollectiveKind::kReduceScatter, .group = plan::GroupId{0u}, .bytes = 8_GB,
                                 .purpose = Purpose::kData});
  const plan::Plan plan = one_program(std::move(b).finish(), 8, 8, {{.name = "dp", .axes = {Axis::kData}, .stages = {}}});
  const TestCluster cluster{8, "clos", 8.0};
  const run::Result all = simulate(plan, cluster, false);
  const run::Result folded = simulate(plan, cluster, true);
  REQUIRE(folded.folded);
  CHECK(folded.step == all.step);
  CHECK(all.step.seconds() == doctest::Approx(7e9 / 24e9).epsilon(1e-3));
}

TEST_CASE("run: spans of a recorded worker fill its streams without overlap") {
  const run::Result result = run::simulate(two_stages(8), TestCluster{2}.machine(),
                                           {.fold = false, .record = {RankId{0u}, RankId{8u}}});
  REQUIRE(result.recording.spans.size() == 5);
  CHECK(result.recording.workers.size() == 2);
  for (std::size_t i = 1; i < result.recording.spans.size(); ++i) {
    const trace::Span& a = result.recording.spans[i - 1];
    const trace::Span& b = result.recording.spans[i];
    if (a.worker == b.worker && a.stream == b.stream) CHECK(a.start + a.duration <= b.start);
  }
}

TEST_CASE("run: the same plan gives the same fingerprints") {
  const run::Result a = simulate(two_stages(8), TestCluster{2});
  const run::Result b = simulate(two_stages(8), TestCluster{2});
  CHECK(a.order_fingerprint == b.order_fingerprint);
  CHECK(a.results_fingerprint == b.results_fingerprint);
}

TEST_SUITE_END();
