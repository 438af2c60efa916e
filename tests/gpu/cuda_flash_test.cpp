// Attention on tensor cores against the CPU's, which tests hold against its definition (unit/executor_kernels_test.cpp). Operands are rounded to
// 16 bits for both; sums and weights are not, so errors stay below 1e-2 of the norm (bf16 keeps 8 bits: 4e-3).
#include <doctest/doctest.h>

#include <cstring>
#include <limits>
#include <vector>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "executor/cpu/attention.hpp"
#include "executor/cuda/check.hpp"
#include "executor/cuda/flash.hpp"
#include "executor/cuda/streams.hpp"
#include "sim/base/random.hpp"
#include "tests/support/relative_distance.hpp"

using namespace stepcast;
using namespace stepcast::executor;
using stepcast::test::relative_distance;

TEST_SUITE_BEGIN("gpu");

namespace {

using Floats = std::vector<float>;

// Host values in T, and the same on the device.
template <class T>
class Operand {
 public:
  Operand(std::int64_t count, std::uint64_t seed) : values_(static_cast<std::size_t>(count)) {
    Rng rng{seed, "flash on a gpu"};
    for (float& v : values_) v = static_cast<float>(T(static_cast<float>(rng.uniform(-1.0, 1.0))));
    upload();
  }
  // Poisoned: what is not written would be seen.
  explicit Operand(std::int64_t count) : values_(static_cast<std::size_t>(count), std::numeric_limits<float>::quiet_NaN()) { upload(); }
  ~Operand() { cudaFree(device_); }
  Operand(const Operand&) = delete;
  Operand& operator=(const Operand&) = delete;

  [[nodiscard]] const Floats& host() const { return values_; }
  [[nodiscard]] T* device() const { return device_; }
  [[nodiscard]] Floats download() const {
    std::vector<T> back(values_.size(), T(0.0F));
    STEPCAST_CUDA(cudaMemcpy(back.data(), device_, back.size() * sizeof(T), cudaMemcpyDeviceToHost));
    Floats floats;
    for (const T& x : back) floats.push_back(static_cast<float>(x));
    return floats;
  }

 private:
  void upload() {
    std::vector<T> narrow;
    for (const float v : values_) narrow.push_back(T(v));
    STEPCAST_CUDA(cudaMalloc(&device_, narrow.size() * sizeof(T)));
    STEPCAST_CUDA(cudaMemcpy(device_, narrow.data(), narrow.size() * sizeof(T), cudaMemcpyHostToDevice));
  }
  Floats values_;
  T* device_ = nullptr;
};

template <class T>
void check_shape(const plan::AttentionShape& s, plan::Dtype dtype) {
  const kernels::FlashShape f{s.batch, s.query_heads, s.kv_heads, s.query_length, s.kv_length, static_cast<int>(s.head_dim), static_cast<int>(s.value_dim), s.causal, s.window.value_or(0)};
  REQUIRE(cuda::flash_can(f, dtype));
  const std::int64_t rows = s.batch * s.query_length;
  const std::int64_t keys = s.batch * s.kv_length;
  const Operand<T> q{rows * s.query_heads * s.head_dim, 1};
  const Operand<T> k{keys * s.kv_heads * s.head_dim, 2};
  const Operand<T> v{keys * s.kv_heads * s.value_dim, 3};
  const Operand<T> dout{rows * s.query_heads * s.value_dim, 4};
  Floats out(dout.host().size());
  Floats sums(static_cast<std::size_t>(rows * s.query_heads));
  attention_forward(s, {q.host().data(), k.host().data(), v.host().data()}, out.data(), sums.data());
  Floats dq(q.host().size());
  Floats dk(k.host().size());
  Floats dv(v.host().size());
  attention_backward(s, {q.host().data(), k.host().data(), v.host().data()}, out.data(), sums.data(), dout.host().data(), {dq.data(), dk.data(), dv.data()});

  const cuda::Streams streams{1};
  const Operand<T> gpu_out{static_cast<std::int64_t>(out.size())};
  const Operand<float> gpu_sums{static_cast<std::int64_t>(sums.size())};
  const cuda::FlashTensors tensors{q.device(), k.device(), v.device(), gpu_out.device(), gpu_sums.device()};
  cuda::flash_forward(streams[0], dtype, f, tensors);
  const Operand<float> delta{static_cast<std::int64_t>(sums.size())};
  const Operand<float> gpu_dq{static_cast<std::int64_t>(dq.size())};
  const Operand<T> gpu_dk{static_cast<std::int64_t>(dk.size())};
  const Operand<T> gpu_dv{static_cast<std::int64_t>(dv.size())};
  cuda::flash_backward(streams[0], dtype, f, tensors, {dout.device(), delta.device(), gpu_dq.device(), gpu_dk.device(), gpu_dv.device()});
  STEPCAST_CUDA(cudaDeviceSynchronize());
  CHECK(relative_distance(gpu_out.download(), out) < 1e-2);
  CHECK(relative_distance(gpu_sums.download(), sums) < 1e-3);
  CHECK(relative_distance(gpu_dq.download(), dq) < 1e-2);
  CHECK(relative_distance(gpu_dk.download(), dk) < 1e-2);
  CHECK(relative_distance(gpu_dv.download(), dv) < 1e-2);
}

}  // namespace

TEST_CASE("cuda: attention by blocks on tensor cores, forward and backward") {
  const std::vector<plan::AttentionShape> shapes{
      {1, 1, 1, 64, 64, 64, 64, true, std::nullopt},   {2, 4, 2, 130, 130, 128, 128, true, std::nullopt}, {1, 2, 1, 65, 65, 16, 48, false, std::nullopt},
      {1, 4, 1, 33, 161, 32, 16, true, std::nullopt},  {1, 2, 2, 200, 200, 64, 64, true, 40},             {1, 1, 1, 1, 1, 128, 128, true, std::nullopt},
  };
  for (const plan::AttentionShape& s : shapes) {
    CAPTURE(s.query_length);
    check_shape<__nv_bfloat16>(s, plan::Dtype::kBf16);
    check_shape<__half>(s, plan::Dtype::kFp16);
  }
}

TEST_CASE("cuda: attention in blocks is refused where tensor cores cannot") {
  CHECK(!cuda::flash_can({1, 1, 1, 64, 64, 64, 64, true, 0}, plan::Dtype::kFp32));
  CHECK(!cuda::flash_can({1, 1, 1, 64, 64, 40, 40, true, 0}, plan::Dtype::kBf16));
  CHECK(!cuda::flash_can({1, 1, 1, 64, 64, 4096, 4096, true, 0}, plan::Dtype::kBf16));
}
