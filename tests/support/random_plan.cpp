#include "tests/support/random_plan.hpp"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "sim/base/random.hpp"
#include "sim/plan/builder.hpp"

namespace stepcast::test {
namespace {

class RandomPlan {
 public:
  explicit RandomPlan(std::uint64_t seed) : rng_{seed, "random plan"} {
    stages_ = 1 + static_cast<std::int32_t>(rng_.below(4));
    micro_batches_ = 1 + static_cast<std::int32_t>(rng_.below(4));
    one_forward_one_backward_ = rng_.below(2) == 1;
    message_ = bytes(64 << 20);
    gradients_ = bytes(512 << 20);
    embedding_ = bytes(32 << 20);
  }

  plan::Plan make() {
    using namespace plan;
    Plan plan;
    plan.name = fmt::format("random \"{}\"", stages_);
    plan.degrees[Axis::kTensor] = 1 << rng_.below(4);
    plan.degrees[Axis::kData] = 1 + static_cast<std::int32_t>(rng_.below(5));
    plan.degrees[Axis::kPipeline] = stages_;
    plan.groups = {{"tp", {Axis::kTensor}, {}}, {"dp", {Axis::kData}, {}}, {"everyone", {Axis::kTensor, Axis::kData, Axis::kPipeline}, {}}};
    if (stages_ > 1) plan.groups.push_back({"embedding", {Axis::kPipeline}, {0, stages_ - 1}});
    for (std::int32_t s = 0; s < stages_; ++s) {
      plan.programs.push_back(stage_program(s));
      plan.program_of_stage.emplace_back(static_cast<std::size_t>(s));
    }
    plan.work = {.samples = micro_batches_, .tokens = micro_batches_ * 128, .model_flops = Flops::from_si(rng_.uniform() * 1e18), .flops_convention = "megatron"};
    return plan;
  }

 private:
  Bytes bytes(std::uint64_t most) { return Bytes{static_cast<std::int64_t>(1 + rng_.below(most))}; }

  plan::Kernel random_kernel() {
    using namespace plan;
    const auto dim = [&] { return static_cast<std::int64_t>(1 + rng_.below(4096)); };
    Kernel k;
    switch (rng_.below(3)) {
      case 0:
        k.op = OpClass::kGemm;
        k.gemm = GemmShape{1 + static_cast<std::int64_t>(rng_.below(3)), dim(), dim(), dim()};
        k.flops = Flops::from_si(2.0 * static_cast<double>(k.gemm->m) * static_cast<double>(k.gemm->n) * static_cast<double>(k.gemm->k));
        break;
      case 1:
        k.op = OpClass::kAttention;
        k.attention = AttentionShape{1, 8, 2, dim(), dim(), 64, 64, rng_.below(2) == 1, std::nullopt};
        if (rng_.below(2) == 1) k.attention->window = dim();
        k.flops = Flops::from_si(rng_.uniform() * 1e12);
        break;
      default: k.op = OpClass::kNorm; k.flops = Flops::from_si(rng_.uniform() / 3.0);
    }
    k.read = bytes(1 << 30);
    k.written = bytes(1 << 30);
    k.launches = 1 + static_cast<int>(rng_.below(3));
    if (k.gemm && k.launches > 1) k.launches = static_cast<int>(k.gemm->batch);  // they divide it
    return k;
  }

  plan::Program stage_program(std::int32_t s) {
    using namespace plan;
    ProgramBuilder b{fmt::format("stage {} of {}", s, stages_)};
    const StreamId compute = b.stream(StreamKind::kCompute, "compute");
    const StreamId dp = b.stream(StreamKind::kCommunication, "dp");
    const StreamId send = b.stream(StreamKind::kCommunication, "pp.send");
    const StreamId recv = b.stream(StreamKind::kCommunication, "pp.recv");
    const StreamId h2d = b.stream(StreamKind::kHostToDevice, "h2d");
    b.alloc(compute, "weights", bytes(1 << 30), Category::kParameters);
    b.alloc(compute, "staging", bytes(1 << 20), Category::kCommunication, Memory::kPinnedHost);
    std::vector<BufferId> kept;
    const auto forward = [&](std::int32_t m) {
      b.context({Stage::kForward, static_cast<std::uint16_t>(s), static_cast<std::uint16_t>(m)});
      if (s == 0) {
        b.load_batch(b.stream(StreamKind::kIo, "io"), "batch", bytes(1 << 20));
        b.copy(h2d, "batch.copy", CopyKind::kHostToDevice, bytes(1 << 20));
        b.order(h2d, compute);
      } else {
        b.recv(recv, "pp.forward", s - 1, message_);
        b.order(recv, compute);
      }
      kept.push_back(b.alloc(compute, "activations", bytes(1 << 28), Category::kActivations));
      for (std::uint64_t i = rng_.below(4); i > 0; --i) b.compute(compute, fmt::format("op{}", rng_.below(3)), random_kernel());
      b.collective(compute, "tp.reduce", {CollectiveKind::kAllReduce, GroupId{std::size_t{0}}, bytes(1 << 20), Dtype::kBf16, Purpose::kTensor});
      if (s + 1 < stages_) {
        b.order(compute, send);
        b.send(send, "pp.forward", s + 1, message_);
      }
    };
    const auto backward = [&](std::int32_t m) {
      b.context({Stage::kBackward, static_cast<std::uint16_t>(s), static_cast<std::uint16_t>(m)});
      if (s + 1 < stages_) {
        b.recv(recv, "pp.backward", s + 1, message_);
        b.order(recv, compute);
      }
      b.compute(compute, "grad", random_kernel());
      b.free(compute, kept[static_cast<std::size_t>(m)]);
      if (s > 0) {
        b.order(compute, send);
        b.send(send, "pp.backward", s - 1, message_);
      }
    };
    const std::int32_t ahead = one_forward_one_backward_ ? std::min(micro_batches_, stages_ - s) : micro_batches_;
    for (std::int32_t m = 0; m < ahead; ++m) forward(m);
    for (std::int32_t m = 0; m < micro_batches_; ++m) {
      backward(m);
      if (m + ahead < micro_batches_) forward(m + ahead);
    }
    b.context({Stage::kGradientSync, std::nullopt, std::nullopt});
    b.order(compute, dp);
    b.collective(dp, "grad.reduce", {CollectiveKind::kReduceScatter, GroupId{std::size_t{1}}, gradients_, Dtype::kFp32, Purpose::kData});
    if (stages_ > 1 && (s == 0 || s == stages_ - 1)) {
      b.collective(dp, "embedding.reduce", {CollectiveKind::kAllReduce, GroupId{std::size_t{3}}, embedding_, Dtype::kFp32, Purpose::kData});
    }
    b.collective(dp, "norm.reduce", {CollectiveKind::kAllReduce, GroupId{std::size_t{2}}, Bytes{4}, Dtype::kFp32, Purpose::kData});
    b.order(dp, compute);
    b.context({Stage::kOptimizer, std::nullopt, std::nullopt});
    b.host_compute(b.stream(StreamKind::kHost, "host"), "adam", Flops::from_si(1e6), Bytes{1000});
    return std::move(b).finish();
  }

  Rng rng_;
  std::int32_t stages_ = 1;
  std::int32_t micro_batches_ = 1;
  bool one_forward_one_backward_ = false;
  Bytes message_, gradients_, embedding_;
};

}  // namespace

plan::Plan random_plan(std::uint64_t seed) { return RandomPlan{seed}.make(); }

}  // namespace stepcast::test
