#include <doctest/doctest.h>

#include "models/parallel/planner.hpp"
#include "sim/base/random.hpp"
#include "sim/run/flow_run.hpp"
#include "tests/support/run_fixture.hpp"

using namespace stepcast;

TEST_SUITE_BEGIN("property");

namespace {

workload::ModelShape small_model() {
  workload::ModelShape shape;
  shape.name = "small";
  shape.layers = 8;
  shape.hidden = 1024;
  shape.heads = 16;
  shape.kv_heads = 8;
  shape.head_dim = 64;
  shape.ffn = 4096;
  shape.vocab = 32000;
  shape.gated_mlp = true;
  return shape;
}

template <class T>
T pick(Rng& rng, std::initializer_list<T> values) {
  return *(values.begin() + static_cast<std::ptrdiff_t>(rng.below(values.size())));
}

struct Job {
  parallel::Strategy strategy;
  std::int64_t nodes = 1;
  const char* fabric = "rail-clos";
  double oversubscription = 1.0;
  std::int64_t nvlink_domain = 1;
};

Job random_job(Rng& rng) {
  Job job;
  parallel::Strategy& s = job.strategy;
  s.tp = pick(rng, {1, 2, 4, 8});
  s.pp = pick(rng, {1, 2, 4});
  const std::int32_t least = std::max(1, 8 / (s.tp * s.pp));  // fill at least one host
  s.dp = least * pick(rng, {1, 2, 4});
  s.zero = s.pp == 1 ? pick(rng, {0, 1, 2, 3}) : pick(rng, {0, 1});
  s.schedule = pick(rng, {parallel::Schedule::kGpipe, parallel::Schedule::kOneFOneB});
  s.sequence_parallel = s.tp > 1 && rng.below(2) == 0;
  s.overlap_grad_reduce = rng.below(2) == 0;
  s.sequence = 1024;
  s.global_batch = s.dp * pick(rng, {1, 2, 4});
  s.bucket = Bytes{8 << 20};
  job.nodes = s.tp * s.pp * s.dp / 8;
  job.fabric = pick(rng, {"rail-clos", "clos"});
  job.oversubscription = pick(rng, {1.0, 2.0, 4.0});
  if (const std::int64_t domain = pick(rng, {1, 1, 2, 4}); job.nodes % domain == 0) job.nvlink_domain = domain;
  return job;
}

// A cluster whose cards speak TCP: `threads` helpers a connection, cores of 2 GB/s.
class TcpCluster {
 public:
  TcpCluster(const Job& job, std::int64_t threads, std::int64_t nics)
      : fabric_{build(job, nics)}, router_{fabric_}, gpu_{gpu::testing::round_gpu()} {
    transports_.network = {.per_message = Duration::microseconds(5), .chunk = Bytes{131072}, .copies = 2,
                           .sockets = network::Sockets{.core_rate = 2e9, .connection_rate = 5e9, .threads = threads, .sockets_per_thread = 1, .channels = 2}};
  }
  [[nodiscard]] run::Machine machine() const {
    return {.fabric = fabric_, .router = router_, .gpu = gpu_, .collectives = {}, .forced = {}, .communicator_bytes = Bytes{0},
            .communication_launch = Duration::microseconds(5), .paths = {}, .transports = transports_};
  }

 private:
  static topology::Fabric build(const Job& job, std::int64_t nics) {
    topology::ClusterHardware box = topology::test::nvswitch_box();
    box.nic.transport = topology::Transport::kTcp;
    box.socket_rate = Bandwidth::from_si(32 * 2e9);
    scenario::Cluster cluster = topology::test::cluster_of(job.nodes, job.fabric);
    cluster.fabric->nics_per_node = nics;
    cluster.fabric->oversubscription = job.oversubscription;
    return topology::build_fabric(box, cluster);
  }
  topology::Fabric fabric_;
  topology::Router router_;
  gpu::GpuModel gpu_;
  network::TransportCosts transports_;
};

workload::ModelShape small_mixture() {
  workload::ModelShape shape = small_model();
  shape.experts = workload::ExpertShape{.count = 32, .top_k = 4, .ffn = 512, .shared_ffn = 512};
  return shape;
}

Job random_mixture_job(Rng& rng) {
  Job job = random_job(rng);
  parallel::Strategy& s = job.strategy;
  s.sequence_parallel = s.tp > 1;
  s.cp = pick(rng, {1, 2});
  s.context_style = pick(rng, {workload::ContextStyle::kRing, workload::ContextStyle::kAllGather});
  s.ep = pick(rng, {2, 4, 8});
  if (s.tp > 1) s.etp = 1;
  s.overlap_shared_experts = rng.below(2) == 0;
  if (s.ep == 8 && rng.below(2) == 0) s.ep_within = 4;
  job.nodes *= s.cp;
  return job;
}

}  // namespace

TEST_CASE("run: experts and long sequences fold, and their exchanges show") {
  int folded_count = 0;
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    CAPTURE(seed);
    Rng rng(seed, "run-mixture");
    const Job job = random_mixture_job(rng);
    if (!parallel::check(small_mixture(), job.strategy).empty()) continue;
    const plan::Plan plan = parallel::make_plan(small_mixture(), job.strategy);
    const run::testing::TestCluster cluster{job.nodes, job.fabric, job.oversubscription};
    const run::Result full = run::simulate(plan, cluster.machine(), {.fold = false});
    const run::Result folded = run::simulate(plan, cluster.machine(), {.fold = true});
    CAPTURE(folded.fold_note);
    CHECK(full.breakdown.total() == full.step);
    CHECK(std::abs(full.step / folded.step - 1.0) < 1e-6);
    // Beside shared experts the exchanges may hide altogether.
    if (!job.strategy.overlap_shared_experts) CHECK(full.breakdown.exposed_ep > Duration{});
    if (job.strategy.cp > 1 && job.strategy.context_style == workload::ContextStyle::kAllGather)
      CHECK(full.breakdown.exposed_cp > Duration{});
    if (job.strategy.cp == 1) CHECK(full.breakdown.exposed_cp == Duration{});
    folded_count += folded.folded ? 1 : 0;
  }
  CHECK(folded_count >= 10);
}

TEST_CASE("run: folding changes nothing, the breakdown adds up, bandwidth never hurts") {
  int folded_count = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    Rng rng(seed, "run-property");
    const Job job = random_job(rng);
    REQUIRE(parallel::check(small_model(), job.strategy).empty());
    const plan::Plan plan = parallel::make_plan(small_model(), job.strategy);
    const run::testing::TestCluster cluster{job.nodes, job.fabric, job.oversubscription, job.nvlink_domain};
    const run::Result full = run::simulate(plan, cluster.machine(), {.fold = false});
    const run::Result folded = run::simulate(plan, cluster.machine(), {.fold = true});
    CAPTURE(folded.fold_note);
    CHECK(full.breakdown.total() == full.step);
    CHECK(std::abs(full.step / folded.step - 1.0) < 1e-6);
    CHECK(full.workers_simulated == plan.world_size());
    if (folded.folded) {
      ++folded_count;
      CHECK(folded.workers_simulated == plan.degrees[plan::Axis::kPipeline]);
    }
    const run::testing::TestCluster wider{job.nodes, job.fabric, 1.0, job.nvlink_domain};
    CHECK(run::simulate(plan, wider.machine(), {.fold = true}).step <= folded.step + Duration::nanoseconds(1));
  }
  CHECK(folded_count >= 30);  // else the comparison above says little
}

TEST_CASE("run: over sockets folding changes nothing, helper threads never hurt, and cores work only where there is a network") {
  int folded_count = 0;
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    CAPTURE(seed);
    Rng rng(seed, "run-sockets-property");
    const Job job = random_job(rng);
    REQUIRE(parallel::check(small_model(), job.strategy).empty());
    const plan::Plan plan = parallel::make_plan(small_model(), job.strategy);
    const std::int64_t nics = pick(rng, {std::int64_t{1}, std::int64_t{8}});
    const TcpCluster cluster{job, 0, nics};
    const run::Result full = run::simulate(plan, cluster.machine(), {.fold = false});
    const run::Result folded = run::simulate(plan, cluster.machine(), {.fold = true});
    CAPTURE(folded.fold_note);
    CHECK(full.breakdown.total() == full.step);
    CHECK(std::abs(full.step / folded.step - 1.0) < 1e-6);
    CHECK(full.socket_time.seconds() == doctest::Approx(folded.socket_time.seconds()).epsilon(1e-6));
    CHECK((full.socket_time > Duration{}) == (job.nodes > 1));
    folded_count += folded.folded ? 1 : 0;
    const TcpCluster helped{job, 4, nics};
    CHECK(run::simulate(plan, helped.machine(), {.fold = true}).step <= folded.step + Duration::nanoseconds(1));
  }
  CHECK(folded_count >= 15);
}

TEST_CASE("run: where congestion control loses, folding changes nothing and a step is never faster") {
  int folded_count = 0;
  int slower_count = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    CAPTURE(seed);
    Rng rng(seed, "run-congestion-property");
    const Job job = random_job(rng);
    const plan::Plan plan = parallel::make_plan(small_model(), job.strategy);
    const run::testing::TestCluster cluster{job.nodes, job.fabric, job.oversubscription};
    run::Machine machine = cluster.machine();
    const run::Result ideal = run::simulate(plan, machine, {.fold = true});
    machine.transports.network.congestion = {.loss = 0.1, .per_doubling = 0.03};
    const run::Result full = run::simulate(plan, machine, {.fold = false});
    const run::Result folded = run::simulate(plan, machine, {.fold = true});
    CAPTURE(folded.fold_note);
    CHECK(std::abs(full.step / folded.step - 1.0) < 1e-6);
    CHECK(folded.step + Duration::nanoseconds(1) >= ideal.step);
    folded_count += folded.folded ? 1 : 0;
    slower_count += folded.step > ideal.step + Duration::microseconds(1) ? 1 : 0;
  }
  CHECK(folded_count >= 20);
  CHECK(slower_count >= 5);
}

TEST_CASE("run: more senders to one receiver are never faster") {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    CAPTURE(seed);
    Rng rng(seed, "incast-property");
    Job job;
    job.nodes = 16;
    job.fabric = "clos";
    job.oversubscription = pick(rng, {1.0, 2.0, 4.0});
    const run::testing::TestCluster cluster{job.nodes, job.fabric, job.oversubscription};
    const topology::Router router{cluster.fabric()};
    network::TransportCosts costs;
    costs.network.congestion = {.loss = 0.01 * static_cast<double>(rng.below(30)), .per_doubling = 0.01 * static_cast<double>(rng.below(5))};
    run::PathRules rules;
    if (rng.below(2) == 0) rules.policy = network::PathPolicy::kEEcmp;
    Duration before;
    std::vector<run::FlowSpec> flows;
    for (std::uint32_t sender = 1; sender < 16; ++sender) {
      flows.push_back({8 * sender, 0, Bytes{10'000'000}, {}});
      run::LinkPaths paths{cluster.fabric(), rules};
      Duration makespan;
      for (const TimePoint end : run::run_flows(router, paths, flows, costs).end) makespan = std::max(makespan, end.since_start());
      CHECK(makespan >= before);
      before = makespan;
    }
  }
}

TEST_SUITE_END();
