#include <doctest/doctest.h>

#include "models/parallel/planner.hpp"
#include "sim/base/random.hpp"
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

}  // namespace

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

TEST_SUITE_END();
