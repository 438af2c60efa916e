// Attention on tensor cores, ours and cuDNN's, against the CPU's, which tests hold against its definition (unit/executor_kernels_test.cpp). Operands are rounded to
// 16 bits for both; sums and weights are not, so errors stay below 1e-2 of the norm (bf16 keeps 8 bits: 4e-3).
#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "executor/cpu/attention.hpp"
#include "executor/cuda/check.hpp"
#include "executor/cuda/cudnn/attention_library.hpp"
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

kernels::FlashShape flash_shape(const plan::AttentionShape& s) {
  return {s.batch, s.query_heads, s.kv_heads, s.query_length, s.kv_length, static_cast<int>(s.head_dim), static_cast<int>(s.value_dim), s.causal, s.window.value_or(0)};
}

// Operands of both passes, and what the CPU makes of them.
template <class T>
struct Case {
  explicit Case(const plan::AttentionShape& s)
      : q{s.batch * s.query_length * s.query_heads * s.head_dim, 1},
        k{s.batch * s.kv_length * s.kv_heads * s.head_dim, 2},
        v{s.batch * s.kv_length * s.kv_heads * s.value_dim, 3},
        dout{s.batch * s.query_length * s.query_heads * s.value_dim, 4},
        out(dout.host().size()),
        sums(static_cast<std::size_t>(s.batch * s.query_length * s.query_heads)),
        dq(q.host().size()),
        dk(k.host().size()),
        dv(v.host().size()) {
    attention_forward(s, {q.host().data(), k.host().data(), v.host().data()}, out.data(), sums.data());
    attention_backward(s, {q.host().data(), k.host().data(), v.host().data()}, out.data(), sums.data(), dout.host().data(), {dq.data(), dk.data(), dv.data()});
  }
  Operand<T> q, k, v, dout;
  Floats out, sums, dq, dk, dv;
};

template <class T>
std::int64_t count_of(const std::vector<T>& values) {
  return static_cast<std::int64_t>(values.size());
}

template <class T>
void check_shape(const plan::AttentionShape& s, plan::Dtype dtype) {
  const kernels::FlashShape f = flash_shape(s);
  REQUIRE(cuda::flash_can(f, dtype));
  const Case<T> c{s};
  const cuda::Streams streams{1};
  const Operand<T> gpu_out{count_of(c.out)};
  const Operand<float> gpu_sums{count_of(c.sums)};
  const cuda::FlashTensors tensors{c.q.device(), c.k.device(), c.v.device(), gpu_out.device(), gpu_sums.device()};
  cuda::flash_forward(streams[0], dtype, f, tensors);
  const Operand<float> delta{count_of(c.sums)};
  const Operand<float> gpu_dq{count_of(c.dq)};
  const Operand<T> gpu_dk{count_of(c.dk)};
  const Operand<T> gpu_dv{count_of(c.dv)};
  cuda::flash_backward(streams[0], dtype, f, tensors, {c.dout.device(), delta.device(), gpu_dq.device(), gpu_dk.device(), gpu_dv.device()});
  STEPCAST_CUDA(cudaDeviceSynchronize());
  CHECK(relative_distance(gpu_out.download(), c.out) < 1e-2);
  CHECK(relative_distance(gpu_sums.download(), c.sums) < 1e-3);
  CHECK(relative_distance(gpu_dq.download(), c.dq) < 1e-2);
  CHECK(relative_distance(gpu_dk.download(), c.dk) < 1e-2);
  CHECK(relative_distance(gpu_dv.download(), c.dv) < 1e-2);
}

// The same by cuDNN, on a stream that is not the default one.
template <class T>
void check_library(cudnn::AttentionLibrary& library, const plan::AttentionShape& s, plan::Dtype dtype) {
  const cudnn::AttentionPlan* const forward = library.plan(flash_shape(s), dtype, cudnn::Pass::kForward);
  const cudnn::AttentionPlan* const backward = library.plan(flash_shape(s), dtype, cudnn::Pass::kBackward);
  REQUIRE_MESSAGE(forward != nullptr, library.account());
  REQUIRE_MESSAGE(backward != nullptr, library.account());
  const Case<T> c{s};
  const cuda::Streams streams{1};
  const Operand<T> out{count_of(c.out)};
  const Operand<float> sums{count_of(c.sums)};
  const Operand<T> dq{count_of(c.dq)};
  const Operand<T> dk{count_of(c.dk)};
  const Operand<T> dv{count_of(c.dv)};
  const Operand<float> work{static_cast<std::int64_t>((std::max(forward->workspace(), backward->workspace()) + 3) / 4 + 1)};
  cudnn::AttentionOperands operands{.q = c.q.device(), .k = c.k.device(), .v = c.v.device(), .out = out.device(), .log_sums = sums.device()};
  library.run(*forward, streams[0], operands, work.device());
  operands.dout = c.dout.device();
  operands.dq = dq.device();
  operands.dk = dk.device();
  operands.dv = dv.device();
  STEPCAST_CUDA(cudaMemsetAsync(work.device(), 0, backward->zeroed(), streams[0]));
  library.run(*backward, streams[0], operands, work.device());
  STEPCAST_CUDA(cudaDeviceSynchronize());
  CHECK(relative_distance(out.download(), c.out) < 1e-2);
  CHECK(relative_distance(sums.download(), c.sums) < 1e-3);
  CHECK(relative_distance(dq.download(), c.dq) < 1e-2);
  CHECK(relative_distance(dk.download(), c.dk) < 1e-2);
  CHECK(relative_distance(dv.download(), c.dv) < 1e-2);
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

TEST_CASE("cuda: attention by cuDNN, forward and backward") {
  cudnn::AttentionLibrary library = cudnn::AttentionLibrary::find();
  if (library.account().starts_with("our own")) {
    MESSAGE("skipped: " << library.account());
    return;
  }
  const std::vector<plan::AttentionShape> shapes{
      {1, 2, 2, 128, 128, 64, 64, true, std::nullopt}, {2, 4, 2, 200, 200, 128, 128, true, std::nullopt}, {1, 4, 4, 256, 256, 64, 64, false, std::nullopt},
  };
  for (const plan::AttentionShape& s : shapes) {
    CAPTURE(s.query_length);
    check_library<__nv_bfloat16>(library, s, plan::Dtype::kBf16);
    check_library<__half>(library, s, plan::Dtype::kFp16);
  }
}

TEST_CASE("cuda: attention in blocks is refused where tensor cores cannot") {
  CHECK(!cuda::flash_can({1, 1, 1, 64, 64, 64, 64, true, 0}, plan::Dtype::kFp32));
  CHECK(!cuda::flash_can({1, 1, 1, 64, 64, 40, 40, true, 0}, plan::Dtype::kBf16));
  CHECK(!cuda::flash_can({1, 1, 1, 64, 64, 4096, 4096, true, 0}, plan::Dtype::kBf16));
}
