// Messages of one channel, worked out by hand; and a pipeline over a slow link with and without an eager limit.
#include <doctest/doctest.h>

#include "models/parallel/planner.hpp"
#include "sim/plan/check.hpp"
#include "sim/run/channel.hpp"
#include "tests/support/run_fixture.hpp"

using namespace stepcast;
using namespace stepcast::run;

TEST_SUITE_BEGIN("unit");

namespace {

constexpr std::uint32_t kSender = 1;
constexpr std::uint32_t kReceiver = 2;
constexpr Bytes kKilobyte{1000};

TimePoint us(std::int64_t n) { return TimePoint{} + Duration::microseconds(n); }

// When the stream went on, if it did.
std::optional<TimePoint> end_of(const Channel::Outcome& out, std::uint32_t stream) {
  for (const Channel::End& end : out.over)
    if (end.stream == stream) return end.at;
  return std::nullopt;
}

}  // namespace

TEST_CASE("channel: without buffers both sides wait for each other") {
  Channel channel{{}};
  Channel::Outcome out;
  channel.send(kSender, us(10), kKilobyte, out);
  CHECK_FALSE(out.moves);
  CHECK(out.over.empty());
  channel.receive(kReceiver, us(30), out);
  CHECK(out.moves == us(30));
  channel.arrive(us(40), out);
  CHECK(end_of(out, kSender) == us(40));
  CHECK(end_of(out, kReceiver) == us(40));
  CHECK(out.over.front().moving_since == us(30));
}

TEST_CASE("channel: an eager message moves when it is sent, one that was there first is copied") {
  // 1 kB at 1 GB/s: 1 us.
  const network::Ahead ahead{.eager = kKilobyte, .buffered = kKilobyte, .copy_rate = 1e9};
  Channel channel{ahead};
  Channel::Outcome out;
  channel.send(kSender, us(10), kKilobyte, out);
  CHECK(out.moves == us(10));
  CHECK(out.over.empty());
  channel.arrive(us(20), out);
  CHECK(end_of(out, kSender) == us(20));  // it has left
  channel.receive(kReceiver, us(50), out);
  CHECK(end_of(out, kReceiver) == us(51));
  // Asked for in time: no copy.
  channel.receive(kReceiver, us(60), out);
  channel.send(kSender, us(70), kKilobyte, out);
  CHECK(out.moves == us(70));
  channel.arrive(us(80), out);
  CHECK(end_of(out, kReceiver) == us(80));
  // One byte more: rendezvous.
  channel.send(kSender, us(90), Bytes{1001}, out);
  CHECK_FALSE(out.moves);
  CHECK(out.over.empty());
}

TEST_CASE("channel: a synchronous send of an eager message ends when it is received") {
  Channel channel{{.eager = kKilobyte, .buffered = Bytes{0}}};
  Channel::Outcome out;
  channel.send(kSender, us(10), kKilobyte, out);
  channel.arrive(us(20), out);
  CHECK(out.over.empty());
  channel.receive(kReceiver, us(50), out);
  CHECK(end_of(out, kSender) == us(50));
  CHECK(end_of(out, kReceiver) == us(50));
}

TEST_CASE("channel: buffers hold what nobody asked for, in order and no more than they hold") {
  Channel channel{{.eager = Bytes{0}, .buffered = Bytes{2000}}};
  Channel::Outcome out;
  for (const std::int64_t at : {10, 20}) {
    channel.send(kSender, us(at), kKilobyte, out);
    CHECK(end_of(out, kSender) == us(at));
    CHECK_FALSE(out.moves);
  }
  channel.send(kSender, us(30), kKilobyte, out);  // full
  CHECK(out.over.empty());
  channel.receive(kReceiver, us(40), out);
  CHECK(out.moves == us(40));
  channel.arrive(us(45), out);
  CHECK(end_of(out, kReceiver) == us(45));
  CHECK(end_of(out, kSender) == us(45));  // the third has room
  channel.receive(kReceiver, us(46), out);
  CHECK(out.moves == us(46));
  channel.arrive(us(50), out);
  channel.receive(kReceiver, us(60), out);
  channel.arrive(us(70), out);
  CHECK(end_of(out, kReceiver) == us(70));
}

namespace {

Result pipeline(const network::Ahead& ahead, Duration latency = {}, parallel::Schedule schedule = parallel::Schedule::kOneFOneB) {
  workload::ModelShape shape;
  shape.name = "small";
  shape.layers = 4;
  shape.hidden = 256;
  shape.heads = 8;
  shape.kv_heads = 8;
  shape.head_dim = 32;
  shape.ffn = 1024;
  shape.vocab = 1024;
  parallel::Strategy strategy;
  strategy.pp = 4;
  strategy.tp = 8;
  strategy.sequence = 1024;
  strategy.global_batch = 16;
  strategy.schedule = schedule;
  REQUIRE(parallel::check(shape, strategy).empty());
  const run::testing::TestCluster cluster{4};
  Machine machine = cluster.machine();
  machine.transports.network.per_message = latency;
  machine.transports.network.ahead = ahead;
  return simulate(parallel::make_plan(shape, strategy), machine, {.fold = false});
}

}  // namespace

// Messages cost a millisecond each: what a rendezvous delays an eager message has behind it.
TEST_CASE("channel: pipelines with buffers are never slower, and faster over slow links") {
  const Bytes all{1 << 30};
  for (const parallel::Schedule schedule : {parallel::Schedule::kGpipe, parallel::Schedule::kOneFOneB}) {
    const Duration slow = Duration::microseconds(1000);
    const Duration rendezvous = pipeline({}, slow, schedule).step;
    const Duration synchronous = pipeline({.eager = all, .buffered = Bytes{0}}, slow, schedule).step;
    const Duration eager = pipeline({.eager = all, .buffered = all}, slow, schedule).step;
    const Duration buffered = pipeline({.eager = Bytes{0}, .buffered = all}, slow, schedule).step;
    CHECK(eager <= synchronous);
    CHECK(synchronous <= rendezvous);
    CHECK(eager <= buffered);
    CHECK(buffered <= rendezvous);
    CHECK(eager < rendezvous);
  }
}

// A circle of sends is refused whatever the transport holds: a plan may not hang on the size of a buffer.
TEST_CASE("channel: what only buffers could save is refused by the plan's check") {
  const auto both_send_first = [](std::int32_t peer, const char* name) {
    plan::ProgramBuilder b{name};
    const plan::StreamId stream = b.stream(plan::StreamKind::kCompute, "main");
    b.send(stream, "out", peer, Bytes{8});
    b.recv(stream, "in", peer, Bytes{8});
    return std::move(b).finish();
  };
  plan::Plan plan;
  plan.name = "circle";
  plan.degrees[plan::Axis::kPipeline] = 2;
  plan.programs.push_back(both_send_first(1, "first"));
  plan.programs.push_back(both_send_first(0, "last"));
  plan.program_of_stage = {plan::ProgramId{0u}, plan::ProgramId{1u}};
  CHECK_FALSE(plan::check(plan).empty());
}

TEST_SUITE_END();
