// Every operation on the GPU against the CPU's, which tests hold against double precision (unit/executor_kernels_test.cpp). fp32 throughout:
// errors well below 1e-3 of the norm; odd sizes, outputs poisoned before.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "executor/cpu/cpu_math.hpp"
#include "executor/cuda/cuda_math.hpp"
#include "executor/cuda/kernels.hpp"
#include "sim/base/random.hpp"
#include "tests/support/random_values.hpp"
#include "tests/support/relative_distance.hpp"

using namespace stepcast;
using namespace stepcast::executor;
using stepcast::test::random_values;
using stepcast::test::relative_distance;

TEST_SUITE_BEGIN("gpu");

namespace {

using Floats = std::vector<float>;
constexpr double kTolerance = 1e-5;

// The same arrays on both; a call is made on each and one array compared.
class Both {
 public:
  float* array(const Floats& values) {
    Floats& host = hosts_.emplace_back(values);
    float* const device = gpu_.floats(values.size());
    gpu_.upload(std::span<const float>{values}, device);
    devices_.push_back(device);
    return host.data();
  }
  float* output(std::size_t count) { return array(Floats(count, std::numeric_limits<float>::quiet_NaN())); }

  // `call` gets the math and a function from host arrays to that math's own.
  template <class Call>
  double compare(const float* result, Call&& call) {
    call(static_cast<Math&>(cpu_), [](float* host) { return host; });
    call(static_cast<Math&>(gpu_), [this](float* host) { return device_of(host); });
    STEPCAST_CUDA(cudaDeviceSynchronize());
    for (std::size_t i = 0; i < hosts_.size(); ++i) {
      if (hosts_[i].data() != result) continue;
      Floats back(hosts_[i].size());
      gpu_.download(devices_[i], back);
      return relative_distance(back, hosts_[i]);
    }
    return 1.0;
  }
  std::int32_t* device_tokens(const std::vector<std::int32_t>& tokens) {
    std::int32_t* const device = gpu_.tokens(tokens.size());
    gpu_.upload(std::span<const std::int32_t>{tokens}, device);
    return device;
  }

 private:
  float* device_of(const float* host) {
    for (std::size_t i = 0; i < hosts_.size(); ++i) {
      if (hosts_[i].data() == host) return devices_[i];
    }
    return nullptr;
  }

  cuda::Streams streams_{1};
  cuda::Matmul matmul_{1};
  cuda::CudaMath gpu_{streams_, matmul_};
  CpuMath cpu_;
  std::vector<Floats> hosts_ = [] {
    std::vector<Floats> hosts;
    hosts.reserve(64);  // arrays stay where they are
    return hosts;
  }();
  std::vector<float*> devices_;
};

}  // namespace

TEST_CASE("cuda: products with transposed operands, added and not") {
  for (const Transpose ta : {Transpose::kNo, Transpose::kYes}) {
    for (const Transpose tb : {Transpose::kNo, Transpose::kYes}) {
      Both both;
      float* const a = both.array(random_values(50 * 70, 1));
      float* const b = both.array(random_values(70 * 30, 2));
      float* const c = both.array(random_values(50 * 30, 3));
      const double error = both.compare(c, [&](Math& math, auto&& on) {
        math.multiply({50, 30, 70, ta, tb, false}, on(a), on(b), on(c));
        math.multiply({50, 30, 70, ta, tb, true}, on(a), on(b), on(c));
      });
      CHECK(error < kTolerance);
    }
  }
}

TEST_CASE("cuda: norms and their gradients") {
  constexpr std::int64_t kRows = 37;
  constexpr std::int64_t kWidth = 129;
  Both both;
  float* const x = both.array(random_values(kRows * kWidth, 1));
  float* const gain = both.array(random_values(kWidth, 2));
  float* const dy = both.array(random_values(kRows * kWidth, 3));
  float* const y = both.output(kRows * kWidth);
  float* const inverse = both.output(kRows);
  float* const dx = both.output(kRows * kWidth);
  float* const dgain = both.array(Floats(kWidth, 0.5F));
  const auto call = [&](Math& math, auto&& on) {
    const kernels::Norm n{kRows, kWidth, on(x), on(gain)};
    math.norm(n, on(y), on(inverse));
    math.fill(on(dgain), kWidth, 0.5F);
    math.norm_gradient(n, on(inverse), on(dy), on(dx), on(dgain));
  };
  for (const float* result : {y, inverse, dx, dgain}) CHECK(both.compare(result, call) < kTolerance);
}

TEST_CASE("cuda: rotary positions, attention and its gradient") {
  const plan::AttentionShape s{2, 4, 2, 33, 33, 16, 16, true, std::nullopt};
  const std::int64_t rows = 66;
  const std::int64_t width = 128;
  Both both;
  float* const qkv = both.array(random_values(static_cast<std::size_t>(rows * width), 4));
  float* const dout = both.array(random_values(static_cast<std::size_t>(rows * 64), 5));
  float* const out = both.output(static_cast<std::size_t>(rows * 64));
  float* const sums = both.output(static_cast<std::size_t>(rows * 4));
  float* const dqkv = both.output(static_cast<std::size_t>(rows * width));
  CHECK(both.compare(qkv, [&](Math& math, auto&& on) { math.rotate({33, 6, 16, width, 1.0F}, rows, on(qkv)); }) < kTolerance);
  const auto call = [&](Math& math, auto&& on) {
    math.attention({s, on(qkv)}, on(out), on(sums));
    math.attention_gradient({s, on(qkv)}, on(out), on(sums), on(dout), on(dqkv));
  };
  for (const float* result : {out, sums, dqkv}) CHECK(both.compare(result, call) < kTolerance);
}

TEST_CASE("cuda: SwiGLU, sums, Adam, squares") {
  constexpr std::size_t kCount = 1000;
  Both both;
  float* const u = both.array(random_values(2 * kCount, 1));
  float* const da = both.array(random_values(kCount, 2));
  float* const a = both.output(kCount);
  float* const du = both.output(2 * kCount);
  const auto activation = [&](Math& math, auto&& on) {
    math.swiglu(10, 100, on(u), on(a));
    math.swiglu_gradient(10, 100, on(u), on(da), on(du));
  };
  for (const float* result : {a, du}) CHECK(both.compare(result, activation) < kTolerance);
  float* const sum = both.output(kCount);
  CHECK(both.compare(sum, [&](Math& math, auto&& on) { math.add(on(a), on(da), on(sum), kCount); }) < kTolerance);
  float* const p = both.array(random_values(kCount, 3));
  float* const m = both.array(Floats(kCount, 0.0F));
  float* const v = both.array(Floats(kCount, 0.0F));
  const auto update = [&](Math& math, auto&& on) { math.adam(kernels::adam_step({}, 1, 0.5F), kCount, on(p), on(da), on(m), on(v)); };
  CHECK(both.compare(p, update) < kTolerance);
  float* const squares = both.array(Floats(1, 0.0F));
  CHECK(both.compare(squares, [&](Math& math, auto&& on) {
    math.fill(on(squares), 1, 0.0F);
    math.add_squares(on(da), kCount, on(squares));
  }) < kTolerance);
}

TEST_CASE("cuda: both ends of the vocabulary") {
  constexpr std::int64_t kRows = 21;
  constexpr std::int64_t kWidth = 40;
  const kernels::Band band{64, 64};
  std::vector<std::int32_t> tokens;
  Rng rng{9, "tokens"};
  for (std::int64_t i = 0; i < kRows; ++i) tokens.push_back(static_cast<std::int32_t>(rng.below(192)));
  Both both;
  std::int32_t* const on_gpu = both.device_tokens(tokens);
  const auto mine = [&](const Math& math) { return dynamic_cast<const CpuMath*>(&math) != nullptr ? tokens.data() : on_gpu; };
  float* const table = both.array(random_values(64 * kWidth, 1));
  float* const out = both.output(kRows * kWidth);
  float* const dtable = both.array(Floats(64 * kWidth, 0.0F));
  CHECK(both.compare(out, [&](Math& math, auto&& on) { math.embed(kRows, kWidth, band, mine(math), on(table), on(out)); }) < kTolerance);
  CHECK(both.compare(dtable, [&](Math& math, auto&& on) {
    math.fill(on(dtable), 64 * kWidth, 0.0F);
    math.embed_gradient(kRows, kWidth, band, mine(math), on(out), on(dtable));
  }) < kTolerance);
  float* const logits = both.array(random_values(kRows * 64, 2));
  float* const most = both.output(kRows);
  float* const label = both.output(kRows);
  float* const sum = both.output(kRows);
  const auto forward = [&](Math& math, auto&& on) { math.loss(kRows, band, mine(math), on(logits), {on(most), on(label), on(sum)}); };
  for (const float* result : {most, label, sum}) CHECK(both.compare(result, forward) < kTolerance);
  CHECK(both.compare(logits, [&](Math& math, auto&& on) {
    forward(math, on);
    math.loss_gradient(kRows, band, mine(math), {on(most), on(label), on(sum)}, 0.1F, on(logits));
  }) < kTolerance);
}

// Each format's own rounding is far below the differences between random products.
TEST_CASE("cuda: products in low precision are products") {
  cuda::Streams streams{1};
  cuda::Matmul matmul{1};
  constexpr std::int64_t kSide = 64;
  for (const plan::Dtype dtype : {plan::Dtype::kBf16, plan::Dtype::kFp16, plan::Dtype::kTf32, plan::Dtype::kFp32, plan::Dtype::kFp8}) {
    CAPTURE(plan::name_of(dtype));
    if (dtype == plan::Dtype::kFp8) {
      int major = 0;
      int minor = 0;
      STEPCAST_CUDA(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0));
      STEPCAST_CUDA(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0));
      if (10 * major + minor < 89) continue;
    }
    void* a = nullptr;
    void* b = nullptr;
    void* c = nullptr;
    STEPCAST_CUDA(cudaMalloc(&a, 4 * kSide * kSide));
    STEPCAST_CUDA(cudaMalloc(&b, 4 * kSide * kSide));
    STEPCAST_CUDA(cudaMalloc(&c, 4 * kSide * kSide));
    cuda::randomize(streams[0], dtype, a, kSide * kSide, 1);
    cuda::randomize(streams[0], dtype, b, kSide * kSide, 1);
    STEPCAST_CUDA(cudaMemset(c, 0xFF, 4 * kSide * kSide));
    // A row with itself: the diagonal is the sum of squares, about a third of the side.
    matmul.multiply(0, streams[0], dtype, 1, {kSide, kSide, kSide, Transpose::kNo, Transpose::kYes, false}, a, b, c);
    STEPCAST_CUDA(cudaStreamSynchronize(streams[0]));
    std::vector<std::uint16_t> narrow(kSide * kSide);
    Floats whole(kSide * kSide);
    const bool wide = dtype == plan::Dtype::kTf32 || dtype == plan::Dtype::kFp32;
    STEPCAST_CUDA(cudaMemcpy(wide ? static_cast<void*>(whole.data()) : narrow.data(), c, (wide ? 4 : 2) * kSide * kSide, cudaMemcpyDeviceToHost));
    if (!wide && dtype != plan::Dtype::kFp16) {
      for (std::size_t i = 0; i < narrow.size(); ++i) {
        const std::uint32_t bits = std::uint32_t{narrow[i]} << 16U;
        std::memcpy(&whole[i], &bits, 4);
      }
    }
    if (dtype != plan::Dtype::kFp16) {
      for (std::size_t i = 0; i < static_cast<std::size_t>(kSide); ++i) CHECK(whole[i * kSide + i] == doctest::Approx(kSide / 3.0).epsilon(0.4));
    }
    for (void* block : {a, b, c}) cudaFree(block);
  }
}
namespace {

// Floats on the device.
class Device {
 public:
  explicit Device(const Floats& values) : count_{values.size()} {
    STEPCAST_CUDA(cudaMalloc(&data_, count_ * sizeof(float)));
    STEPCAST_CUDA(cudaMemcpy(data_, values.data(), count_ * sizeof(float), cudaMemcpyHostToDevice));
  }
  ~Device() { cudaFree(data_); }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  [[nodiscard]] float* data() const { return static_cast<float*>(data_); }
  [[nodiscard]] Floats download() const {
    Floats back(count_);
    STEPCAST_CUDA(cudaDeviceSynchronize());
    STEPCAST_CUDA(cudaMemcpy(back.data(), data_, count_ * sizeof(float), cudaMemcpyDeviceToHost));
    return back;
  }

 private:
  std::size_t count_;
  void* data_ = nullptr;
};

}  // namespace

TEST_CASE("cuda: random data lies between -1 and 1, the same for a seed") {
  constexpr std::size_t kCount = 10001;
  const cuda::Streams streams{1};
  const auto drawn = [&](std::uint64_t seed) {
    const Device values{Floats(kCount, std::numeric_limits<float>::quiet_NaN())};
    cuda::randomize(streams[0], plan::Dtype::kFp32, values.data(), kCount, seed);
    return values.download();
  };
  const Floats one = drawn(1);
  CHECK(one == drawn(1));
  CHECK(one != drawn(2));
  double sum = 0.0;
  double squares = 0.0;
  for (const float v : one) {
    CHECK_UNARY(v >= -1.0F && v < 1.0F);
    sum += double{v};
    squares += double{v} * double{v};
  }
  // Mean 0 and variance 1/3, six deviations of a mean of so many.
  CHECK(std::abs(sum / kCount) < 6.0 * std::sqrt(1.0 / 3.0 / kCount));
  CHECK(squares / kCount == doctest::Approx(1.0 / 3.0).epsilon(0.05));
}

TEST_CASE("cuda: streams of bytes touch what they are told to") {
  constexpr std::size_t kCount = 4096;
  const cuda::Streams streams{1};
  const Floats x = random_values(kCount, 21);
  const Device in{x};
  for (const bool exponential : {false, true}) {
    const Device out{Floats(2 * kCount, std::numeric_limits<float>::quiet_NaN())};
    cuda::stream_bytes(streams[0], in.data(), kCount * sizeof(float), out.data(), 2 * kCount * sizeof(float), exponential);
    Floats expected;
    for (const float v : x) expected.push_back(exponential ? std::exp(-std::abs(v)) : v * 0.5F);
    expected.resize(2 * kCount, exponential ? 1.0F : 0.0F);  // of nothing read
    CHECK(relative_distance(out.download(), expected) < 1e-5);
  }
  const Device untouched{Floats(4, 3.0F)};
  cuda::stream_bytes(streams[0], in.data(), kCount * sizeof(float), untouched.data(), 0, false);
  CHECK(untouched.download() == Floats(4, 3.0F));
}

TEST_CASE("cuda: a held stream waits until it is released") {
  const cuda::Streams streams{1};
  const cuda::Events events{1, cudaEventDisableTiming};
  int* released = nullptr;
  STEPCAST_CUDA(cudaHostAlloc(&released, sizeof(int), cudaHostAllocMapped));
  *static_cast<volatile int*>(released) = 0;
  cuda::hold_stream(streams[0], released);
  STEPCAST_CUDA(cudaEventRecord(events[0], streams[0]));
  CHECK(cudaEventQuery(events[0]) == cudaErrorNotReady);
  *static_cast<volatile int*>(released) = 1;
  STEPCAST_CUDA(cudaEventSynchronize(events[0]));
  cudaFreeHost(released);
}
