// Whole plans on a GPU: a model that learns what the CPU's learns, and random data on every kind of instruction.
#include <doctest/doctest.h>

#include <filesystem>
#include <set>

#include "executor/common/measure.hpp"
#include "executor/common/model_payload.hpp"
#include "executor/cpu/cpu_device.hpp"
#include "executor/cpu/cpu_math.hpp"
#include "executor/cpu/local_messenger.hpp"
#include "executor/cuda/cuda_device.hpp"
#include "executor/cuda/cuda_math.hpp"
#include "executor/cuda/cuda_payload.hpp"
#include "models/parallel/planner.hpp"
#include "sim/plan/builder.hpp"
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

// What a measurement needs to go on: alone, and done.
class Alone : public Together {
 public:
  void barrier() override {}
  bool anyone(bool says) override { return says; }
};

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

TEST_CASE("cuda: points of every kind are measured, in random data, and those that the GPU lacks are left out") {
  plan::ProgramBuilder b{"points"};
  const plan::StreamId compute = b.stream(plan::StreamKind::kCompute, "compute");
  const plan::StreamId aside = b.stream(plan::StreamKind::kHostToDevice, "aside");
  std::uint16_t point = 0;
  const auto kernel = [&](const plan::Kernel& k) {
    b.layer(point++);
    b.compute(compute, "kernel", k);
  };
  kernel({.op = plan::OpClass::kGemm, .dtype = plan::Dtype::kBf16, .gemm = plan::GemmShape{1, 256, 256, 256}});
  kernel({.op = plan::OpClass::kElementwise, .dtype = plan::Dtype::kFp32, .read = Bytes{1 << 20}, .written = Bytes{1 << 20}, .launches = 3});
  kernel({.op = plan::OpClass::kElementwise, .dtype = plan::Dtype::kFp32, .launches = 1000});
  kernel({.op = plan::OpClass::kOptimizer, .dtype = plan::Dtype::kFp32, .read = Bytes{16 << 16}, .written = Bytes{12 << 16}});
  for (const plan::Pass pass : {plan::Pass::kForward, plan::Pass::kBackward}) {
    for (const plan::Dtype dtype : {plan::Dtype::kBf16, plan::Dtype::kFp32}) {
      kernel({.op = plan::OpClass::kAttention, .pass = pass, .dtype = dtype, .attention = plan::AttentionShape{1, 4, 2, 128, 128, 64, 64}});
    }
  }
  for (const plan::Memory host : {plan::Memory::kPinnedHost, plan::Memory::kPageableHost, plan::Memory::kManaged}) {
    for (const plan::CopyKind kind : {plan::CopyKind::kHostToDevice, plan::CopyKind::kDeviceToHost}) {
      b.layer(point++);
      b.copy(aside, "copy", kind, Bytes{1 << 20}, host);
    }
  }
  for (const plan::CopyKind kind : {plan::CopyKind::kHostToNvme, plan::CopyKind::kNvmeToHost, plan::CopyKind::kDeviceToDevice}) {
    b.layer(point++);
    b.copy(aside, "copy", kind, Bytes{1 << 20});
  }
  b.layer(point++);
  b.host_compute(compute, "host adam", Flops::from_si(14.0 * 65536.0), Bytes{28 << 16});
  plan::Plan plan;
  plan.name = "points";
  plan.programs.push_back(std::move(b).finish());
  plan.program_of_stage = {plan::ProgramId{0U}};

  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "stepcast-cuda-points";
  std::filesystem::create_directories(folder);
  const auto rendezvous = make_rendezvous("file:" + (folder / "meeting").string(), 0, std::chrono::seconds{5});
  const RankId rank{0U};
  const plan::Program& program = plan.program(rank);
  const cuda::Streams streams{program.streams.size()};
  cuda::Matmul matmul{program.streams.size()};
  cuda::Communicators communicators{plan, rank, *rendezvous};
  cudnn::AttentionLibrary library = cudnn::AttentionLibrary::find();
  cuda::CudaPayload payload{program, streams, matmul, library, 1};
  MESSAGE("attention by " << payload.attention_account());
  cuda::CudaDevice device{plan, rank, streams, communicators, payload, kMemory};
  Alone alone;
  const std::string file = (folder / "points.records").string();
  {
    RecordWriter writer{file};
    measure_points(program, device, alone, {.least = 3, .most = 5, .budget_s = 0.1}, 0, [] { return Readings{{"power_w", 1.0}}; }, writer);
  }
  const Records records = read_records(file);
  std::set<std::uint32_t> measured;
  for (const StepRecord& step : records.steps) {
    CHECK(step.values.size() == 1);
    for (const InstructionTime& t : step.instructions) {
      CHECK(t.time.end > t.time.begin);
      measured.insert(t.instruction);
    }
  }
  CHECK(measured.size() + records.facts.size() == point);
  CHECK(measured.size() + 2 >= point);  // managed pages, both ways, may be missing
  std::filesystem::remove_all(folder);
}
