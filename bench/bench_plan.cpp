// bench/bench_plan.cpp — how fast plans are checked, walked, written and read, and traces written.
// usage: bench_plan          one CSV line a task: name, items, median, least and most of 5 runs [s]
// Processor time: one thread, and other programs do not count.
// A plan of 16 stages x 8,000 layer passes (about 130,000 instructions each), a million spans.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "sim/plan/builder.hpp"
#include "sim/plan/check.hpp"
#include "sim/plan/memory_timeline.hpp"
#include "sim/plan/plan_file.hpp"
#include "sim/plan/print.hpp"
#include "sim/trace/perfetto.hpp"

namespace {

using namespace stepcast;
using namespace stepcast::literals;

constexpr int kStages = 16;
constexpr int kMicroBatches = 1000;
constexpr int kLayers = 8;

plan::Program stage_program(int stage) {
  using namespace plan;
  ProgramBuilder b{fmt::format("stage {} of {}", stage, kStages)};
  const StreamId compute = b.stream(StreamKind::kCompute, "compute");
  const StreamId send = b.stream(StreamKind::kCommunication, "pp.send");
  const StreamId recv = b.stream(StreamKind::kCommunication, "pp.recv");
  const Kernel gemm{.op = OpClass::kGemm, .gemm = GemmShape{1, 8192, 4096, 4096}, .flops = Flops::from_si(2.7e11), .read = 96_MiB, .written = 64_MiB};
  for (int m = 0; m < kMicroBatches; ++m) {
    b.context({Stage::kForward, std::nullopt, static_cast<std::uint16_t>(m)});
    if (stage > 0) {
      b.recv(recv, "pp.forward", stage - 1, 64_MiB);
      b.order(recv, compute);
    }
    std::vector<BufferId> kept;
    for (int layer = 0; layer < kLayers; ++layer) {
      b.layer(static_cast<std::uint16_t>(layer));
      for (int i = 0; i < 4; ++i) kept.push_back(b.alloc(compute, "activations", Bytes{(1 + i) * 3'000'000 + layer}, Category::kActivations));
      for (int i = 0; i < 6; ++i) b.compute(compute, "mlp.up", gemm);
      b.collective(compute, "tp.reduce", {CollectiveKind::kAllReduce, GroupId{std::size_t{0}}, 64_MiB, Dtype::kBf16, Purpose::kTensor});
      b.collective(compute, "tp.reduce", {CollectiveKind::kAllReduce, GroupId{std::size_t{0}}, 64_MiB, Dtype::kBf16, Purpose::kTensor});
    }
    for (const BufferId buffer : kept) b.free(compute, buffer);
    if (stage + 1 < kStages) {
      b.order(compute, send);
      b.send(send, "pp.forward", stage + 1, 64_MiB);
    }
  }
  return std::move(b).finish();
}

plan::Plan large_plan() {
  plan::Plan plan;
  plan.degrees[plan::Axis::kTensor] = 8;
  plan.degrees[plan::Axis::kData] = 128;
  plan.degrees[plan::Axis::kPipeline] = kStages;
  plan.groups = {{"tp", {plan::Axis::kTensor}, {}}};
  for (int s = 0; s < kStages; ++s) {
    plan.programs.push_back(stage_program(s));
    plan.program_of_stage.emplace_back(static_cast<std::size_t>(s));
  }
  return plan;
}

trace::Recording million_spans() {
  trace::Recording r;
  r.streams = {"compute", "dp"};
  for (std::size_t w = 0; w < 8; ++w) r.workers[RankId{w}] = fmt::format("rank {}", w);
  for (std::size_t i = 0; i < 1'000'000; ++i) {
    r.spans.push_back({.worker = RankId{i % 8}, .stream = static_cast<std::uint8_t>(i / 8 % 2),
                       .start = TimePoint::at(Duration::picoseconds(static_cast<std::int64_t>(i) * 1'000'003)),
                       .duration = 1_us, .name = "attention.qkv forward", .category = "forward", .layer = std::uint16_t{5},
                       .micro_batch = std::uint16_t{7}, .bytes = 123456789, .flops = 2.7e11});
  }
  return r;
}

void measure(const char* name, std::size_t items, const std::function<void()>& task) {
  task();
  std::vector<double> seconds;
  for (int i = 0; i < 5; ++i) {
    const std::clock_t start = std::clock();
    task();
    seconds.push_back(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
  }
  std::sort(seconds.begin(), seconds.end());
  fmt::print("{},{},{:.4f},{:.4f},{:.4f}\n", name, items, seconds[2], seconds[0], seconds[4]);
  std::fflush(stdout);
}

}  // namespace

int main() {
  const plan::Plan plan = large_plan();
  std::size_t instructions = 0;
  for (const plan::Program& p : plan.programs) instructions += p.instructions.size();
  const std::string text = plan::to_file_text(plan);
  const trace::Recording recording = million_spans();
  std::size_t bytes = 0;
  fmt::print("task,items,median_cpu_s,least_cpu_s,most_cpu_s\n");
  measure("build_program", plan.programs[1].instructions.size(), [] { stage_program(1); });
  measure("check_plan", instructions, [&] {
    if (!plan::check(plan).empty()) std::puts("the plan is not sound");
  });
  measure("memory_timeline", plan.programs[1].instructions.size(), [&] { plan::memory_timeline(plan.programs[1], {.samples = true}); });
  measure("write_plan", instructions, [&] { bytes += plan::to_file_text(plan).size(); });
  measure("read_plan", instructions, [&] { plan::from_file_text(text, "memory"); });
  measure("print_plan", instructions, [&] { bytes += plan::print_plan(plan).size(); });
  measure("perfetto", recording.spans.size(), [&] { trace::write_perfetto(recording, [&](std::string_view piece) { bytes += piece.size(); }); });
  return bytes > 0 ? 0 : 1;
}
