// Whole plans on a GPU: a model that learns what the CPU's learns, and random data on every kind of instruction.
#include <doctest/doctest.h>

#include <filesystem>

#include "executor/common/model_payload.hpp"
#include "executor/cpu/cpu_device.hpp"
#include "executor/cpu/cpu_math.hpp"
#include "executor/cpu/local_messenger.hpp"
#include "executor/cuda/cuda_device.hpp"
#include "executor/cuda/cuda_math.hpp"
#include "executor/cuda/cuda_payload.hpp"
#include "models/parallel/planner.hpp"
#include "tests/support/tiny_transformer.hpp"

using namespace stepcast;
using namespace stepcast::executor;

TEST_SUITE_BEGIN("gpu");

namespace {

plan::Plan tiny_plan() {
  parallel::Strategy s = test::tiny_strategy(1, 1, 1, 4);
  s.recompute = workload::Recompute::kFull;
  return parallel::make_plan(test::tiny_transformer(2), s);
}

constexpr Bytes kMemory{std::int64_t{1} << 34};

}  // namespace

TEST_CASE("cuda: a plan learns on a GPU what it learns on CPUs, in times that add up") {
  const plan::Plan plan = tiny_plan();
  const RankId rank{0U};
  const plan::Program& program = plan.program(rank);

  LocalPost post{1};
  LocalMessenger messenger{post, rank};
  CpuMath cpu_math;
  ModelPayload cpu_model{plan, rank, "test", cpu_math, 1};
  CpuDevice cpu{plan, rank, messenger, cpu_model, kMemory};

  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "stepcast-cuda-test";
  const auto rendezvous = make_rendezvous("file:" + folder.string(), 0, std::chrono::seconds{5});
  const cuda::Streams streams{program.streams.size()};
  cuda::Matmul matmul{program.streams.size()};
  cuda::CudaMath math{streams, matmul};
  cuda::Communicators communicators{plan, rank, *rendezvous};
  ModelPayload model{plan, rank, "test", math, 1};
  cuda::CudaDevice device{plan, rank, streams, communicators, model, kMemory};

  for (int step = 0; step < 5; ++step) {
    play(program, cpu);
    play(program, device);
    CHECK(model.values().front().second == doctest::Approx(cpu_model.values().front().second).epsilon(1e-4));
    std::int64_t end = 0;
    for (std::size_t i = 0; i < program.instructions.size(); ++i) {
      if (!takes_time(program.instructions[i].body) || program.instructions[i].stream.index() != 0) continue;
      CHECK(device.intervals()[i].begin >= end);
      end = device.intervals()[i].end;
    }
  }
  std::filesystem::remove_all(folder);
}
