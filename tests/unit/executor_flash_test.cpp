// The block-wise attention that GPUs run on tensor cores (executor/common/kernels/flash.hpp), by a team of one thread, against the CPU
// backend's attention, which is held against its definition (executor_kernels_test.cpp).
#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "executor/common/kernels/flash.hpp"
#include "executor/cpu/attention.hpp"
#include "tests/support/random_values.hpp"
#include "tests/support/relative_distance.hpp"

using namespace stepcast;
using namespace stepcast::executor;
using stepcast::test::random_values;
using stepcast::test::relative_distance;

TEST_SUITE_BEGIN("unit");

namespace {

using Floats = std::vector<float>;

class OneThread {
 public:
  template <class F>
  void each(int count, F&& f) {
    for (int i = 0; i < count; ++i) f(i);
  }
  template <class F>
  void each_row(int rows, F&& f) {
    for (int row = 0; row < rows; ++row) f(row, 0, 1);
  }
  float most(float x) { return x; }
  float sum(float x) { return x; }
  void sync() {}
  void together() {}
  void add_to(float* at, float x) { *at += x; }
  template <class T>
  void copy_rows(T* to, int pitch, const T* from, std::int64_t stride, int rows, std::int64_t valid, int width) {
    for (int row = 0; row < rows; ++row) {
      for (int c = 0; c < width; ++c) to[row * pitch + c] = row < valid ? from[row * stride + c] : T{};
    }
  }
  template <bool ta, bool tb, class T>
  void multiply(const T* a, int lda, const T* b, int ldb, float* c, int ldc, int m, int n, int k, bool adds) {
    for (int i = 0; i < m; ++i) {
      for (int j = 0; j < n; ++j) {
        float sum = adds ? c[i * ldc + j] : 0.0F;
        for (int x = 0; x < k; ++x) sum += (ta ? a[x * lda + i] : a[i * lda + x]) * (tb ? b[j * ldb + x] : b[x * ldb + j]);
        c[i * ldc + j] = sum;
      }
    }
  }
};

kernels::FlashShape flash_shape(const plan::AttentionShape& s) {
  return {s.batch, s.query_heads, s.kv_heads, s.query_length, s.kv_length, static_cast<int>(s.head_dim), static_cast<int>(s.value_dim), s.causal, s.window.value_or(0)};
}

}  // namespace

TEST_CASE("executor: attention by blocks is attention, forward and backward") {
  const std::vector<plan::AttentionShape> shapes{
      {1, 1, 1, 64, 64, 16, 16, true, std::nullopt},   {2, 4, 2, 130, 130, 32, 32, true, std::nullopt}, {1, 2, 1, 65, 65, 16, 48, false, std::nullopt},
      {1, 4, 1, 33, 161, 32, 16, true, std::nullopt},  {1, 2, 2, 200, 200, 16, 16, true, 40},           {1, 1, 1, 1, 1, 128, 128, true, std::nullopt},
      {3, 6, 3, 100, 100, 64, 64, true, std::nullopt},
  };
  for (const plan::AttentionShape& s : shapes) {
    CAPTURE(s.query_length);
    CAPTURE(s.kv_length);
    const kernels::FlashShape f = flash_shape(s);
    const std::int64_t rows = s.batch * s.query_length;
    const std::int64_t keys = s.batch * s.kv_length;
    const Floats q = random_values(rows * s.query_heads * s.head_dim, 1);
    const Floats k = random_values(keys * s.kv_heads * s.head_dim, 2);
    const Floats v = random_values(keys * s.kv_heads * s.value_dim, 3);
    const Floats dout = random_values(rows * s.query_heads * s.value_dim, 4);

    Floats out(dout.size());
    Floats log_sums(static_cast<std::size_t>(rows * s.query_heads));
    attention_forward(s, {q.data(), k.data(), v.data()}, out.data(), log_sums.data());
    Floats dq(q.size());
    Floats dk(k.size());
    Floats dv(v.size());
    attention_backward(s, {q.data(), k.data(), v.data()}, out.data(), log_sums.data(), dout.data(), {dq.data(), dk.data(), dv.data()});

    // Everything that the kernel does not write itself would be seen.
    constexpr float kPoison = std::numeric_limits<float>::quiet_NaN();
    OneThread team;
    Floats flash_out(out.size(), kPoison);
    Floats flash_sums(log_sums.size(), kPoison);
    std::vector<unsigned char> memory(std::max(kernels::FlashForwardTiles<float>{f, nullptr}.bytes, kernels::FlashBackwardTiles<float>{f, nullptr}.bytes), 0xff);
    for (std::int64_t i = 0; i < kernels::flash_forward_items<float>(f); ++i) {
      kernels::flash_forward<float>(team, i, f, {q.data(), k.data(), v.data()}, flash_out.data(), flash_sums.data(), memory.data());
    }
    CHECK(relative_distance(flash_out, out) < 1e-5);
    CHECK(relative_distance(flash_sums, log_sums) < 1e-5);

    Floats delta(log_sums.size(), kPoison);
    for (std::int64_t i = 0; i < rows * s.query_heads; ++i) kernels::flash_delta<float>(i, f, flash_out.data(), dout.data(), delta.data());
    Floats flash_dq(q.size(), 0.0F);
    Floats flash_dk(k.size(), kPoison);
    Floats flash_dv(v.size(), kPoison);
    for (std::int64_t i = 0; i < kernels::flash_backward_items<float>(f); ++i) {
      kernels::flash_backward<float>(team, i, f, {q.data(), k.data(), v.data()}, {dout.data(), flash_sums.data(), delta.data(), flash_dq.data(), flash_dk.data(), flash_dv.data()}, memory.data());
    }
    CHECK(relative_distance(flash_dq, dq) < 1e-5);
    CHECK(relative_distance(flash_dk, dk) < 1e-5);
    CHECK(relative_distance(flash_dv, dv) < 1e-5);
  }
}

TEST_CASE("executor: tiles of attention fit the shared memory of every GPU that is built for") {
  // 163 KiB a block on A100 (CUDA C++ programming guide, technical specifications of compute capability 8.0), half-precision elements.
  const kernels::FlashShape widest{1, 1, 1, 4096, 4096, 128, 128, true, 0};
  CHECK(kernels::FlashForwardTiles<std::uint16_t>{widest, nullptr}.bytes <= std::size_t{163} * 1024);
  CHECK(kernels::FlashBackwardTiles<std::uint16_t>{widest, nullptr}.bytes <= std::size_t{163} * 1024);
}
