#include <doctest/doctest.h>

#include "models/gpu/gemm.hpp"
#include "models/gpu/gpu_model.hpp"
#include "sim/base/random.hpp"
#include "tests/support/gpu_fixture.hpp"

using namespace stepcast;
using namespace stepcast::gpu;
using stepcast::gpu::testing::round_gpu;

TEST_SUITE_BEGIN("property");

namespace {

GpuParameters many_tiles() {
  GpuParameters p = round_gpu();
  p.gemm.standard.tiles.clear();
  for (const std::int64_t m : {64, 128, 256})
    for (const std::int64_t n : {64, 96, 128, 256}) p.gemm.standard.tiles.push_back({m, n});
  p.gemm.tile_overhead = Duration::microseconds(2);
  p.gemm.split_k_cost = Duration::microseconds(2);
  p.gemm.operand_bandwidth = Bandwidth::from_si(5e12);
  return p;
}

plan::Kernel gemm_kernel(std::int64_t m, std::int64_t n, std::int64_t k) {
  plan::Kernel kernel{.op = plan::OpClass::kGemm};
  kernel.gemm = plan::GemmShape{1, m, n, k};
  kernel.read = Bytes{2 * (m * k + k * n)};
  kernel.written = Bytes{2 * m * n};
  return kernel;
}

}  // namespace

// Of products whose rows begin on multiples of 16 bytes: padding others up to that can make them faster.
TEST_CASE("gpu: a larger product never takes less time") {
  const std::uint64_t seed = 20;
  CAPTURE(seed);
  Rng rng(seed, "gemm");
  const GpuModel model{many_tiles()};
  for (int i = 0; i < 400; ++i) {
    const auto pick = [&](std::uint64_t most) { return static_cast<std::int64_t>(rng.below(most)) + 1; };
    const std::int64_t m = pick(8192), n = 8 * pick(1024), k = 8 * pick(2048), more = 8 * pick(512);
    CAPTURE(m);
    CAPTURE(n);
    CAPTURE(k);
    CAPTURE(more);
    const Duration base = model.time(gemm_kernel(m, n, k));
    CHECK(model.time(gemm_kernel(m + more, n, k)) >= base);
    CHECK(model.time(gemm_kernel(m, n + more, k)) >= base);
    // A deeper k can be cut where a shallow one could not: doubling it still costs.
    CHECK(model.time(gemm_kernel(m, n, 2 * k)).seconds() >= 0.999 * base.seconds());
  }
}

TEST_CASE("gpu: more of any rate never slows a kernel") {
  Rng rng(21, "rates");
  for (int i = 0; i < 200; ++i) {
    const auto pick = [&](std::uint64_t most) { return static_cast<std::int64_t>(rng.below(most)) + 1; };
    plan::Kernel kernel = gemm_kernel(pick(8192), pick(8192), pick(16384));
    if (i % 3 == 1) {
      kernel = {.op = plan::OpClass::kNorm};
      kernel.read = Bytes{pick(1'000'000'000)};
    } else if (i % 3 == 2) {
      kernel = {.op = plan::OpClass::kAttention};
      const std::int64_t length = pick(8192);
      kernel.attention = plan::AttentionShape{pick(4), pick(32), 1, length, length, 128, 128, true, {}};
      kernel.read = Bytes{pick(100'000'000)};
    }
    const GpuParameters p = many_tiles();
    const Duration base = GpuModel{p}.time(kernel);
    GpuParameters q = p;
    q.hardware.memory_bandwidth = 2.0 * q.hardware.memory_bandwidth;
    CHECK(GpuModel{q}.time(kernel) <= base);
    q = p;
    q.gemm.operand_bandwidth = 2.0 * q.gemm.operand_bandwidth;
    CHECK(GpuModel{q}.time(kernel) <= base);
    CHECK(GpuModel{at_clock(p, 1.2)}.time(kernel) <= base);
    CHECK(GpuModel{at_clock(p, 0.8)}.time(kernel) >= base);
  }
}

TEST_CASE("gpu: attention grows with the sequence, causal costs no more than full") {
  const GpuModel model{round_gpu()};
  Duration last;
  for (std::int64_t s = 128; s <= 8192; s += 128) {
    plan::Kernel kernel{.op = plan::OpClass::kAttention};
    kernel.attention = plan::AttentionShape{2, 8, 8, s, s, 128, 128, true, {}};
    const Duration causal = model.time(kernel);
    CHECK(causal >= last);
    last = causal;
    kernel.attention->causal = false;
    CHECK(causal <= model.time(kernel));
    kernel.pass = plan::Pass::kBackward;
    CHECK(model.time(kernel) >= causal);
  }
}

TEST_SUITE_END();
