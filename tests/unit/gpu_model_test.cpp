#include <doctest/doctest.h>

#include "models/gpu/attention.hpp"
#include "models/gpu/gemm.hpp"
#include "models/gpu/gpu_model.hpp"
#include "tests/support/gpu_fixture.hpp"

using namespace stepcast;
using namespace stepcast::gpu;
using stepcast::gpu::testing::round_gpu;

TEST_SUITE_BEGIN("unit");

namespace {

plan::Kernel gemm_kernel(std::int64_t m, std::int64_t n, std::int64_t k) {
  plan::Kernel kernel{.op = plan::OpClass::kGemm, .dtype = plan::Dtype::kBf16};
  kernel.gemm = plan::GemmShape{1, m, n, k};
  kernel.read = Bytes{2 * (m * k + k * n)};
  kernel.written = Bytes{2 * m * n};
  return kernel;
}

}  // namespace

// 1280 x 1280 in tiles of 128 x 128 is exactly 100 tiles: one wave of 100 SMs. One more row adds a
// row of ten tiles, and with it a second wave.
TEST_CASE("gpu: tiles and waves of a GEMM are counted in whole ones") {
  const GpuParameters p = round_gpu();
  const GemmPlan exact = plan_gemm(p, {1, 1280, 1280, 4096}, plan::Dtype::kBf16, 0);
  CHECK(exact.tiles == 100);
  CHECK(exact.waves == 1);
  const GemmPlan ragged = plan_gemm(p, {1, 1281, 1280, 4096}, plan::Dtype::kBf16, 0);
  CHECK(ragged.tiles == 110);
  CHECK(ragged.waves == 2);
}

// Ten products of 1280 x 128, ten tiles each, in one launch: one wave of 100 SMs. One after another each splits its sums over k among
// the SMs and takes longer than a tenth of that.
TEST_CASE("gpu: products of several launches run one after another") {
  const GpuModel model{round_gpu()};
  const auto seconds = [&](std::int64_t batch, int launches) {
    plan::Kernel kernel{.op = plan::OpClass::kGemm, .dtype = plan::Dtype::kBf16};
    kernel.gemm = plan::GemmShape{batch, 1280, 128, 4096};
    kernel.launches = launches;
    return model.time(kernel).seconds();
  };
  CHECK(seconds(10, 10) == doctest::Approx(10 * seconds(1, 1)).epsilon(1e-9));
  CHECK(seconds(10, 10) > seconds(10, 1));
}

// Heads of 225: rows begin on multiples of 2 bytes; a quarter of the rate is the least. Operands of a tile of 128 x 128 are 2 * 128 * 256
// elements (k rounded up to the loop's depth of 64): 131,072 B at a quarter of 10 GB/s instead of 16.8 us of products.
TEST_CASE("gpu: operands that begin off 16 bytes load slowly") {
  GpuParameters p = round_gpu();
  p.gemm.sm_bandwidth = Bandwidth::from_si(10e9);
  const auto seconds = [&](std::int64_t k) { return plan_gemm(p, {1, 1280, 1280, k}, plan::Dtype::kBf16, 0).seconds; };
  CHECK(seconds(256) == doctest::Approx(2.0 * 128 * 128 * 256 / 0.5e12));
  CHECK(seconds(225) == doctest::Approx(256.0 * 256 * 2 / (10e9 / 4)));
  CHECK(seconds(228) == doctest::Approx(256.0 * 256 * 2 / (10e9 / 2)));
}

// Sixteen matrices of 1280 x 1280 x 256, then of 228 (rows of 456 bytes, no multiple of 16): sixteen tiles an SM, at a tenth of the rate. One product of
// the same rows keeps the tensor cores.
TEST_CASE("gpu: batched products of rows off 16 bytes run without tensor cores") {
  GpuParameters p = round_gpu();
  p.hardware.peak[static_cast<std::size_t>(plan::Dtype::kFp32)] = FlopRate::from_si(p.hardware.peak[static_cast<std::size_t>(plan::Dtype::kBf16)].si() / 10.0);
  const auto seconds = [&](std::int64_t batch, std::int64_t k) { return plan_gemm(p, {batch, 1280, 1280, k}, plan::Dtype::kBf16, 0).seconds; };
  CHECK(seconds(16, 256) == doctest::Approx(16 * 2.0 * 128 * 128 * 256 / 0.5e12));
  CHECK(seconds(16, 228) == doctest::Approx(10 * seconds(16, 256)));
  CHECK(seconds(1, 228) < 2 * seconds(1, 256));
}

// Experts with 153 tokens each: no row of their weight gradients' operands is shorter for it.
TEST_CASE("gpu: an odd number of tokens leaves an expert's weight gradient its tensor cores") {
  GpuParameters p = round_gpu();
  p.hardware.peak[static_cast<std::size_t>(plan::Dtype::kFp32)] = FlopRate::from_si(p.hardware.peak[static_cast<std::size_t>(plan::Dtype::kBf16)].si() / 10.0);
  const auto seconds = [&](std::int64_t tokens, plan::Pass pass) { return plan_gemm(p, {16, 1280, 1280, tokens}, plan::Dtype::kBf16, 0, pass).seconds; };
  CHECK(seconds(153, plan::Pass::kWeightGrad) <= seconds(160, plan::Pass::kWeightGrad));
  CHECK(seconds(153, plan::Pass::kInputGrad) > 5 * seconds(160, plan::Pass::kInputGrad));
}

// The NVIDIA developer forum's case 337991 (a GEMM of exactly one wave beside an all-gather of 24 blocks): 76 of 100 SMs are
// left, the tile stays as chosen for all of them, and a second wave doubles the time. With half as many tiles nothing waits.
TEST_CASE("gpu: SMs that a collective holds cost a GEMM whole waves") {
  const GpuParameters taken = beside(round_gpu(), {.sms = 24, .memory = {}});
  const plan::GemmShape one_wave{1, 1280, 1280, 4096};
  const GemmPlan alone = plan_gemm(round_gpu(), one_wave, plan::Dtype::kBf16, 0);
  const GemmPlan slowed = plan_gemm(taken, one_wave, plan::Dtype::kBf16, 0);
  CHECK(alone.waves == 1);
  CHECK(slowed.waves == 2);
  CHECK(slowed.tile == alone.tile);
  CHECK(slowed.seconds == doctest::Approx(2 * alone.seconds));
  const plan::GemmShape half{1, 1280, 640, 128};  // too shallow to be split
  CHECK(plan_gemm(taken, half, plan::Dtype::kBf16, 0).seconds == doctest::Approx(plan_gemm(round_gpu(), half, plan::Dtype::kBf16, 0).seconds));
}

// 0.8 GB at 0.8 of 1 TB/s: 1 ms; with 200 GB/s taken 1.25 ms. Half of the bandwidth stays whatever is asked for: 2 ms.
TEST_CASE("gpu: memory bandwidth that a collective takes slows what streams") {
  const plan::Kernel stream{.op = plan::OpClass::kElementwise, .read = Bytes{800'000'000}};
  const auto ms = [&](double taken) {
    const GpuModel model{beside(round_gpu(), {.sms = 0, .memory = Bandwidth::from_si(taken)})};
    return (model.time(stream) - Duration::microseconds(1)).seconds() * 1e3;
  };
  CHECK(ms(0) == doctest::Approx(1.0));
  CHECK(ms(200e9) == doctest::Approx(1.25));
  CHECK(ms(900e9) == doctest::Approx(2.0));
}

// One tile: 2 * 128 * 128 * 4096 FLOP at 0.5 of an SM's 1 TFLOP/s = 268.435456 us; a wave of them takes as
// long; the floor of 1 us comes on top. Memory (31.5 MB + 3.3 MB at 0.8 TB/s = 44 us) is not the limit.
TEST_CASE("gpu: one wave takes one tile's time") {
  const GpuModel model{round_gpu()};
  CHECK(model.time(gemm_kernel(1280, 1280, 4096)).seconds() == doctest::Approx(269.435456e-6));
}

// 80 MB at 0.8 of 1 TB/s = 100 us, plus 1 us. Twice the kernels: one more floor.
TEST_CASE("gpu: a large elementwise kernel runs at memory bandwidth") {
  const GpuModel model{round_gpu()};
  plan::Kernel kernel{.op = plan::OpClass::kElementwise};
  kernel.read = Bytes{40'000'000};
  kernel.written = Bytes{40'000'000};
  CHECK(model.time(kernel).seconds() == doctest::Approx(101e-6));
  kernel.launches = 2;
  CHECK(model.time(kernel).seconds() == doctest::Approx(102e-6));
  CHECK(model.launch_cost(kernel) == Duration::microseconds(10));
  // Row reductions stream at 0.5: 160 us and two floors.
  kernel.op = plan::OpClass::kNorm;
  CHECK(model.time(kernel).seconds() == doctest::Approx(162e-6));
}

// 1 MB lies in L2 (10 TB/s): 0.1 us and the floor.
TEST_CASE("gpu: a small kernel costs the floor") {
  const GpuModel model{round_gpu()};
  plan::Kernel kernel{.op = plan::OpClass::kElementwise};
  kernel.read = Bytes{1'000'000};
  CHECK(model.time(kernel).seconds() == doctest::Approx(1.1e-6));
  kernel.read = Bytes{0};
  CHECK(model.time(kernel) == Duration::microseconds(1));
}

// Four query blocks of 128 over four key blocks: causal visits 1 + 2 + 3 + 4, full 16. A window of 128 keys
// reaches one block back: 1 + 2 + 2 + 2.
TEST_CASE("gpu: causal attention visits the blocks up to the diagonal") {
  plan::AttentionShape shape{1, 1, 1, 512, 512, 128, 128, true, {}};
  CHECK(count_blocks(shape, 128, 128).total == 10);
  CHECK(count_blocks(shape, 128, 128).longest == 4);
  shape.window = 128;
  CHECK(count_blocks(shape, 128, 128).total == 7);
  shape.window.reset();
  shape.causal = false;
  CHECK(count_blocks(shape, 128, 128).total == 16);
}

TEST_SUITE_END();
