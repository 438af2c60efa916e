// What optimizers keep and do for Llama-3-8B on one GPU, worked by hand: bf16 with fp32 gradients and master copy.
// P = 8,030,261,248 parameters. In the layers' matrices M = P - 2 V h - 32 (2 h) - h = 6,979,321,856.
#include <doctest/doctest.h>

#include "models/parallel/optimizer.hpp"
#include "models/parallel/state.hpp"
#include "tests/support/workload_shapes.hpp"

using namespace stepcast;
using namespace stepcast::parallel;
using namespace stepcast::test;

TEST_SUITE_BEGIN("unit");

namespace {

constexpr std::int64_t kP = 8'030'261'248;
constexpr std::int64_t kM = 6'979'321'856;

struct Case {
  Strategy strategy;
  ModelBlocks blocks;
  StageModel stage;
  explicit Case(Optimizer optimizer, int zero = 0, std::int32_t dp = 1) {
    strategy.sequence = 8192;
    strategy.dp = dp;
    strategy.global_batch = dp;
    strategy.zero = zero;
    strategy.optimizer = optimizer;
    blocks = make_blocks(llama3_8b(), strategy);
    stage = split_stages(blocks, strategy)[0];
  }
  [[nodiscard]] std::int64_t states() const { return persistent_state(stage, strategy).optimizer.count(); }
  [[nodiscard]] double flops() const {
    double sum = 0.0;
    for (const UpdateKernel& update : update_kernels(stage, strategy)) sum += update.kernel.flops.si();
    return sum;
  }
};

}  // namespace

TEST_CASE("optimizer: states beside the master copy") {
  CHECK(Case{Optimizer::kAdam}.states() == 12 * kP);
  CHECK(Case{Optimizer::kAdamW}.states() == 12 * kP);
  CHECK(Case{Optimizer::kSgd}.states() == 8 * kP);
  CHECK(Case{Optimizer::kAdam8bit}.states() == 4 * kP + kP / 32 * 65);  // 2 + 8/256
  CHECK(Case{Optimizer::kMuon}.states() == 4 * kP + 4 * kM + 8 * (kP - kM));
  // 291 tensors of 27.6 M elements in the mean, 5,253 a side: 8 x 5,253 x 291 bytes, 0.15 % of one moment.
  const std::int64_t sums = Case{Optimizer::kAdafactor}.states() - 4 * kP;
  CHECK(sums > 0);
  CHECK(sums < kP / 100);
}

// Gradient 4, moments 8, master 4 in; moments 8, master 4, parameter 2 out: 30 bytes an element.
TEST_CASE("optimizer: Adam streams thirty bytes an element in one fused kernel") {
  const Case adam{Optimizer::kAdam};
  const auto updates = update_kernels(adam.stage, adam.strategy);
  REQUIRE(updates.size() == 1);
  CHECK(updates[0].kernel.read.count() == 16 * kP);
  CHECK(updates[0].kernel.written.count() == 14 * kP);
  CHECK(updates[0].kernel.flops.si() == 14.0 * kP);
}

// r = 4096 and c = 6144 (q, k, v), 4096, 28672 (gate and up), 14336, 32 of each:
// 5 (4 r^2 c + 2 r^3) FLOP each, then 8 an element; 16 an element of all else.
TEST_CASE("optimizer: Muon's Newton-Schulz steps") {
  const Case muon{Optimizer::kMuon};
  const auto matrices = muon_matrices(muon.stage, muon.strategy);
  REQUIRE(matrices.size() == 4);
  std::int64_t columns = 0;
  for (const MuonMatrix& m : matrices) {
    CHECK(m.rows == 4096);
    CHECK(m.count == 32);
    columns += m.columns;
  }
  CHECK(columns == 6144 + 4096 + 28672 + 14336);
  const double r = 4096.0;
  const double steps = 32.0 * 5.0 * (4.0 * r * r * static_cast<double>(columns) + 4.0 * 2.0 * r * r * r);
  CHECK(muon.flops() == doctest::Approx(steps + 8.0 * kM + 16.0 * (kP - kM)).epsilon(1e-12));
}

// Over 8 replicas each orthogonalises an eighth of the matrices.
TEST_CASE("optimizer: shards update their share") {
  for (const Optimizer optimizer : {Optimizer::kAdam, Optimizer::kAdam8bit, Optimizer::kSgd, Optimizer::kAdafactor, Optimizer::kMuon}) {
    CAPTURE(static_cast<int>(optimizer));
    const Case whole{optimizer, 0, 8};
    const Case shard{optimizer, 1, 8};
    CHECK(shard.flops() == doctest::Approx(whole.flops() / 8.0).epsilon(1e-6));
    CHECK(static_cast<double>(shard.states()) == doctest::Approx(static_cast<double>(whole.states()) / 8.0).epsilon(1e-3));
  }
}

TEST_SUITE_END();
