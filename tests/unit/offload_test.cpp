// What offloading moves between host and device, to the byte, and what it leaves on the device. P parameters, L layers.
#include <doctest/doctest.h>

#include "models/parallel/offload.hpp"
#include "models/parallel/planner.hpp"
#include "models/parallel/state.hpp"
#include "sim/plan/check.hpp"
#include "tests/support/workload_shapes.hpp"

using namespace stepcast;
using namespace stepcast::parallel;
using namespace stepcast::test;
using plan::CopyKind;

TEST_SUITE_BEGIN("unit");

namespace {

const workload::ModelShape kShape = gpt_shape(12, 512, 8);  // tied embeddings
const std::int64_t kP = count_parameters(kShape).total;
constexpr std::int64_t kResidual = 1024 * 512 * 2;  // one sequence's input of a layer

Strategy base(std::int64_t micro_batches = 1) {
  Strategy s;
  s.sequence = 1024;
  s.global_batch = micro_batches;
  s.gradient_dtype = plan::Dtype::kBf16;
  return s;
}

struct Moved {
  std::int64_t in = 0;
  std::int64_t out = 0;
  std::int64_t cores = 0;
  std::int64_t gathered = 0;
};

Moved moved(const Strategy& s) {
  const std::vector<StrategyError> wrong = check(kShape, s);
  REQUIRE_MESSAGE(wrong.empty(), (wrong.empty() ? "" : wrong.front().path + ": " + wrong.front().problem));
  const plan::Plan plan = make_plan(kShape, s);
  const auto faults = plan::check(plan);
  if (!faults.empty()) FAIL_CHECK(to_text(faults.front()));
  Moved sum;
  for (const plan::Instruction& i : plan.programs[0].instructions) {
    if (const auto* copy = std::get_if<plan::Copy>(&i.body)) (copy->kind == CopyKind::kHostToDevice ? sum.in : sum.out) += copy->bytes.count();
    if (const auto* work = std::get_if<plan::HostCompute>(&i.body)) sum.cores += work->bytes.count();
    const auto* collective = std::get_if<plan::Collective>(&i.body);
    if (collective != nullptr && collective->kind == plan::CollectiveKind::kAllGather) sum.gathered += collective->bytes.count();
  }
  return sum;
}

PersistentState state_of(const Strategy& s) {
  const ModelBlocks blocks = make_blocks(kShape, s);
  return persistent_state(split_stages(blocks, s)[0], s);
}

}  // namespace

// ZeRO-Offload (Ren et al. 2021): gradients out and parameters in, 2 P bytes each, whatever the batch; Adam touches 30 bytes a
// parameter and 8 more to scale the gradient.
TEST_CASE("offload: an optimizer on the host's cores moves 4 P bytes") {
  Strategy s = base();
  s.offload = {.master = true, .momentum = true, .variance = true, .update_on_host = true};
  const Moved m = moved(s);
  CHECK(m.out == 2 * kP);
  CHECK(m.in == 2 * kP);
  CHECK(m.cores == 38 * kP);
  CHECK(state_of(s).optimizer == Bytes{0});
  CHECK(state_of(s).gradients == Bytes{0});
  CHECK(state_of(s).parameters == Bytes{2 * kP});
}

// DeepSpeed's fp16 gradients beside fp32 sums: neither stays.
TEST_CASE("offload: gradients that leave are not kept in another format either") {
  Strategy s = base();
  s.gradient_dtype = plan::Dtype::kFp32;
  s.keeps_low_gradients = true;
  CHECK(state_of(s).gradients == Bytes{6 * kP});
  s.offload = {.master = true, .momentum = true, .variance = true, .update_on_host = true};
  CHECK(state_of(s).gradients == Bytes{0});
}

// From the second micro-batch on the sum comes in, is added to, and goes out.
TEST_CASE("offload: accumulated gradients travel with every micro-batch") {
  Strategy s = base(3);
  s.offload = {.master = true, .momentum = true, .variance = true, .update_on_host = true};
  CHECK(moved(s).out == 3 * 2 * kP);
  CHECK(moved(s).in == 2 * 2 * kP + 2 * kP);
}

// Four replicas each send, update and fetch a quarter; tensors that four does not divide are rounded up.
TEST_CASE("offload: replicas share the work") {
  Strategy s = base(4);
  s.dp = 4;
  s.zero = 2;
  s.offload = {.master = true, .momentum = true, .variance = true, .update_on_host = true};
  const Moved m = moved(s);
  CHECK(m.out >= 2 * kP / 4);
  CHECK(m.out <= 2 * kP / 4 + 2 * 4 * 14);
  CHECK(m.cores == 19 * m.out);
}

// Parameters of zero 3: a shard in before each of two passes, then gathered; or whole layers from the host, and nothing gathered.
TEST_CASE("offload: parameters come in before each pass") {
  Strategy s = base(2);
  s.dp = 2;
  s.zero = 3;
  const std::int64_t gathered = moved(s).gathered;
  s.offload = {.parameters = true};
  Moved m = moved(s);
  CHECK(m.gathered == gathered);
  CHECK(m.in == gathered / 2);
  CHECK(state_of(s).parameters == Bytes{0});
  s.offload.shared = true;
  m = moved(s);
  CHECK(m.gathered == 0);
  CHECK(m.in == gathered);
}

// DeepSpeed's modules: the same bytes in four gathers a layer (queries, keys and values; output; up; down) and one for the tied embedding.
TEST_CASE("sharding: a gather for each weight matrix moves the same bytes") {
  Strategy s = base(2);
  s.dp = 2;
  s.zero = 3;
  const auto gathers = [&] {
    std::int64_t count = 0;
    for (const plan::Instruction& i : make_plan(kShape, s).programs[0].instructions) {
      const auto* c = std::get_if<plan::Collective>(&i.body);
      count += c != nullptr && c->kind == plan::CollectiveKind::kAllGather ? 1 : 0;
    }
    return count;
  };
  const std::int64_t whole = gathers(), bytes = moved(s).gathered;
  s.gather_by_matrix = true;
  CHECK(gathers() == whole + 2 * 12 * 3);  // the units of 12 layers, gathered twice
  CHECK(moved(s).gathered == bytes);
  s.zero = 2;
  CHECK(check(kShape, s).at(0).path == "parallel.gather_by_matrix");
}

// Each of a layer's four matrices by itself, and as often what lies between two of them; of both ends the table of words by itself, and each of the
// other three, whose mean (the table of positions is one) is more than a bucket, too. Or the layer's 2 (12 h^2 + 13 h) = 6.3 MB in buckets of 4 MB.
// The same bytes, but for what padding to two shards adds.
TEST_CASE("sharding: gradients leave in buckets, larger matrices by themselves") {
  Strategy s = base(2);
  s.dp = 2;
  s.zero = 3;
  struct Reduced {
    std::int64_t count = 0;
    std::int64_t bytes = 0;
  };
  const auto reduced = [&] {
    Reduced sum;
    for (const plan::Instruction& i : make_plan(kShape, s).programs[0].instructions) {
      const auto* c = std::get_if<plan::Collective>(&i.body);
      if (c == nullptr || c->kind != plan::CollectiveKind::kReduceScatter) continue;
      ++sum.count;
      sum.bytes += c->bytes.count();
    }
    return sum;
  };
  const Reduced whole = reduced();
  CHECK(whole.count == 13);
  s.gather_by_matrix = true;
  s.bucket = Bytes{100'000};  // vectors have 512 to 2048 elements
  CHECK(reduced().count == 12 * 8 + 4);
  CHECK(reduced().bytes - whole.bytes <= 4 * (12 * 8 + 4));
  s.bucket = Bytes{4'000'000};
  CHECK(reduced().count == 12 * 2 + 2);
  s.bucket = Bytes{1'000'000'000};
  CHECK(reduced().count == whole.count);
}

// One GPU: the same, though nobody shares.
TEST_CASE("offload: one GPU streams its layers") {
  Strategy s = base();
  s.zero = 3;
  s.offload = {.parameters = true};
  const Moved m = moved(s);
  CHECK(m.gathered == 0);
  CHECK(m.in > 2 * kP);      // layers twice
  CHECK(m.in <= 2 * 2 * kP);  // the root unit stays between the passes
}

// llm.q's update: what lies in host memory passes through, both ways; the kernel stays on the device.
TEST_CASE("offload: states pass through the device in the update") {
  Strategy s = base();
  s.fp32_master = false;
  s.state_dtype = plan::Dtype::kBf16;
  s.offload = {.momentum = true};
  CHECK(moved(s).in == 2 * kP);
  CHECK(moved(s).out == 2 * kP);
  CHECK(state_of(s).optimizer == Bytes{2 * kP});
  s.offload = {.master = true, .momentum = true, .variance = true};
  CHECK(moved(s).in == 6 * kP);
  CHECK(moved(s).out == 6 * kP);
  CHECK(moved(s).cores == 0);
  CHECK(state_of(s).optimizer == Bytes{0});
  s.offload = {.gradients = true};  // out; in for the norm, and for the update
  CHECK(moved(s).out == 2 * kP);
  CHECK(moved(s).in == 2 * 2 * kP);
}

// Each layer's input goes out and comes back once a micro-batch; two at a time are on the device.
TEST_CASE("offload: residuals go out and come back") {
  for (const auto recompute : {workload::Recompute::kNone, workload::Recompute::kFull}) {
    Strategy s = base(3);
    s.recompute = recompute;
    const auto peak = [&] {
      std::int64_t held = 0;
      for (const plan::Buffer& buffer : make_plan(kShape, s).programs[0].buffers)
        if (buffer.category == plan::Category::kActivations) held += buffer.size.count();
      return held;
    };
    const std::int64_t before = peak();
    s.offload = {.residuals = true};
    CHECK(moved(s).out == 3 * 12 * kResidual);
    CHECK(moved(s).in == 3 * 12 * kResidual);
    CHECK(peak() < before);
  }
}

TEST_CASE("offload: what cannot be is refused") {
  Strategy s = base();
  s.offload = {.parameters = true};
  CHECK(check(kShape, s).at(0).path == "memory.offload");
  s.zero = 3;
  CHECK(check(kShape, s).empty());
  s.offload = {.master = true, .update_on_host = true};
  CHECK(check(kShape, s).at(0).other_path == "memory.offload_update");
  s.offload = {.shared = true};
  CHECK(check(kShape, s).at(0).path == "memory.offload_shared");
  s.offload = {.momentum = true};
  s.optimizer = Optimizer::kMuon;
  CHECK(check(kShape, s).at(0).other_path == "training.optimizer");
}

TEST_SUITE_END();
