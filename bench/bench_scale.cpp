// bench/bench_scale.cpp — whole training steps at cluster scale, every worker simulated and folded.
// usage: bench_scale [NAME...]     all cases without arguments
//   ring-1024, ring-4096, ring-16384   one 1 GiB ring all-reduce over that many GPUs
//   all-to-all-1024                    every pair of 1,024 GPUs, 1 GiB a GPU in all
//   step-256, step-1024                32-layer model, tp 8 x dp, one step
//   405b-folded, 405b-full             Llama-3-405B, tp 8, pp 16, dp 128: 16,384 GPUs
// Prints CSV: case, workers, events, setup_s (plan and cluster), simulate_s, step_time_s, peak_rss_MB. Times are the
// processor's.
#include <sys/resource.h>

#include <string>
#include <vector>

#include <fmt/format.h>

#include "bench/harness.hpp"
#include "models/parallel/planner.hpp"
#include "models/workload/presets.hpp"
#include "sim/plan/builder.hpp"
#include "sim/run/simulator.hpp"
#include "tests/support/run_fixture.hpp"

using namespace stepcast;

namespace {

struct Case {
  std::string name;
  plan::Plan plan;
  bool fold = false;
};

plan::Plan one_collective(plan::CollectiveKind kind, std::int32_t gpus) {
  plan::ProgramBuilder b{"collective"};
  const auto compute = b.stream(plan::StreamKind::kCompute, "compute");
  b.collective(compute, "collective", {.kind = kind, .group = plan::GroupId{0u},
                                       .bytes = Bytes{1 << 30}, .purpose = plan::Purpose::kData});
  return run::testing::one_program(std::move(b).finish(), 1, gpus,
                                   {{.name = "dp", .axes = {plan::Axis::kData}, .stages = {}}});
}

plan::Plan step(const char* preset, std::int32_t tp, std::int32_t pp, std::int32_t dp, std::int64_t batch,
                std::int64_t sequence) {
  parallel::Strategy strategy;
  strategy.tp = tp;
  strategy.pp = pp;
  strategy.dp = dp;
  strategy.global_batch = batch;
  strategy.sequence = sequence;
  strategy.sequence_parallel = tp > 1;
  strategy.zero = 1;
  return parallel::make_plan(workload::find_preset(preset).shape, strategy);
}

long peak_rss_mb() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss / 1024;
}

void run_case(const std::string& name) {
  const double start = bench::cpu_seconds();
  plan::Plan plan;
  if (name.starts_with("ring-")) plan = one_collective(plan::CollectiveKind::kAllReduce, std::stoi(name.substr(5)));
  if (name == "all-to-all-1024") plan = one_collective(plan::CollectiveKind::kAllToAll, 1024);
  if (name == "step-256") plan = step("llama2-7b", 8, 1, 32, 32, 4096);
  if (name == "step-1024") plan = step("llama2-7b", 8, 1, 128, 128, 4096);
  if (name.starts_with("405b")) plan = step("llama3-405b", 8, 16, 128, 2048, 8192);
  if (plan.programs.empty()) {
    fmt::print(stderr, "bench_scale: no case '{}'\n", name);
    std::exit(2);
  }
  const run::testing::TestCluster cluster{std::max(1, plan.world_size() / 8)};
  const double setup_s = bench::cpu_seconds() - start;
  const run::Result result =
      run::simulate(plan, cluster.machine(), {.fold = name.ends_with("folded")});
  fmt::print("{},{},{},{:.4f},{:.4f},{:.9f},{}\n", name, result.workers_simulated, result.events, setup_s,
             bench::cpu_seconds() - start - setup_s, result.step.seconds(), peak_rss_mb());
  if (name.ends_with("folded") && !result.folded) fmt::print(stderr, "not folded: {}\n", result.fold_note);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> names(argv + 1, argv + argc);
  if (names.empty()) {
    names = {"ring-1024", "ring-4096", "ring-16384", "all-to-all-1024", "step-256", "step-1024", "405b-folded", "405b-full"};
  }
  fmt::print("case,workers,events,setup_s,simulate_s,step_time_s,peak_rss_MB\n");
  for (const std::string& name : names) run_case(name);
}
