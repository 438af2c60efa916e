// Arithmetic of the CPU backend against plain loops in double, and gradients against finite differences.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "executor/common/kernels/attention.hpp"
#include "executor/cpu/attention.hpp"
#include "executor/cpu/cpu_math.hpp"
#include "executor/cpu/gemm.hpp"
#include "executor/common/host_adam.hpp"
#include "tests/support/random_values.hpp"
#include "tests/support/relative_distance.hpp"

using namespace stepcast;
using namespace stepcast::executor;
using stepcast::test::random_values;
using stepcast::test::relative_distance;

TEST_SUITE_BEGIN("unit");

namespace {

using Floats = std::vector<float>;

std::size_t count(std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d = 1) { return static_cast<std::size_t>(a * b * c * d); }

// Softmax attention by its definition, in double.
std::vector<double> attention_by_definition(const plan::AttentionShape& s, const Floats& q, const Floats& k, const Floats& v) {
  std::vector<double> out(count(s.batch, s.query_length, s.query_heads, s.value_dim), 0.0);
  const auto at = [](std::int64_t b, std::int64_t i, std::int64_t h, std::int64_t d, std::int64_t length, std::int64_t heads, std::int64_t dim) {
    return static_cast<std::size_t>(((b * length + i) * heads + h) * dim + d);
  };
  for (std::int64_t b = 0; b < s.batch; ++b) {
    for (std::int64_t h = 0; h < s.query_heads; ++h) {
      const std::int64_t kv = h * s.kv_heads / s.query_heads;
      for (std::int64_t i = 0; i < s.query_length; ++i) {
        const std::int64_t last = s.causal ? i + s.kv_length - s.query_length : s.kv_length - 1;
        const std::int64_t first = s.window ? std::max<std::int64_t>(0, i + s.kv_length - s.query_length + 1 - *s.window) : 0;
        std::vector<double> weights;
        double sum = 0.0;
        for (std::int64_t j = first; j <= last; ++j) {
          double score = 0.0;
          for (std::int64_t d = 0; d < s.head_dim; ++d) {
            score += double{q[at(b, i, h, d, s.query_length, s.query_heads, s.head_dim)]} * double{k[at(b, j, kv, d, s.kv_length, s.kv_heads, s.head_dim)]};
          }
          weights.push_back(std::exp(score / std::sqrt(static_cast<double>(s.head_dim))));
          sum += weights.back();
        }
        for (std::int64_t j = first; j <= last; ++j) {
          for (std::int64_t d = 0; d < s.value_dim; ++d) {
            out[at(b, i, h, d, s.query_length, s.query_heads, s.value_dim)] +=
                weights[static_cast<std::size_t>(j - first)] / sum * double{v[at(b, j, kv, d, s.kv_length, s.kv_heads, s.value_dim)]};
          }
        }
      }
    }
  }
  return out;
}

}  // namespace

TEST_CASE("executor: products with transposed operands, and added to what is there") {
  constexpr std::int64_t kM = 5;
  constexpr std::int64_t kN = 7;
  constexpr std::int64_t kK = 3;
  const Floats a = random_values(kM * kK, 1);
  const Floats b = random_values(kK * kN, 2);
  for (const Transpose ta : {Transpose::kNo, Transpose::kYes}) {
    for (const Transpose tb : {Transpose::kNo, Transpose::kYes}) {
      Floats c(kM * kN, 1.0F);
      multiply({kM, kN, kK, ta, tb, true}, a.data(), b.data(), c.data());
      std::vector<double> expected(kM * kN, 1.0);
      for (std::int64_t i = 0; i < kM; ++i) {
        for (std::int64_t j = 0; j < kN; ++j) {
          for (std::int64_t l = 0; l < kK; ++l) {
            expected[static_cast<std::size_t>(i * kN + j)] += double{a[static_cast<std::size_t>(ta == Transpose::kNo ? i * kK + l : l * kM + i)]} *
                                                              double{b[static_cast<std::size_t>(tb == Transpose::kNo ? l * kN + j : j * kK + l)]};
          }
        }
      }
      CHECK(relative_distance(c, expected) < 1e-6);
    }
  }
}

// More queries than a block; grouped heads; a window; keys longer than queries; values of another width.
TEST_CASE("executor: attention forward and backward") {
  using Shape = plan::AttentionShape;
  for (const Shape& s : {Shape{2, 4, 2, 70, 70, 8, 8, true, std::nullopt}, Shape{1, 2, 1, 66, 66, 8, 4, false, std::nullopt},
                         Shape{1, 2, 2, 100, 100, 8, 8, true, 9}, Shape{1, 2, 2, 5, 40, 8, 8, true, std::nullopt}}) {
    const Floats q = random_values(count(s.batch, s.query_length, s.query_heads, s.head_dim), 3);
    Floats k = random_values(count(s.batch, s.kv_length, s.kv_heads, s.head_dim), 4);
    const Floats v = random_values(count(s.batch, s.kv_length, s.kv_heads, s.value_dim), 5);
    Floats out(count(s.batch, s.query_length, s.query_heads, s.value_dim));
    Floats log_sums(count(s.batch, s.query_length, s.query_heads));
    attention_forward(s, {q.data(), k.data(), v.data()}, out.data(), log_sums.data());
    CHECK(relative_distance(out, attention_by_definition(s, q, k, v)) < 1e-5);

    // d(sum out * w) / d of a few inputs, by central differences of the definition.
    const Floats w = random_values(out.size(), 6);
    Floats dq(q.size());
    Floats dk(k.size());
    Floats dv(v.size());
    attention_backward(s, {q.data(), k.data(), v.data()}, out.data(), log_sums.data(), w.data(), {dq.data(), dk.data(), dv.data()});
    const auto loss = [&](const Floats& q_, const Floats& k_, const Floats& v_) {
      const std::vector<double> o = attention_by_definition(s, q_, k_, v_);
      double sum = 0.0;
      for (std::size_t i = 0; i < o.size(); ++i) sum += o[i] * double{w[i]};
      return sum;
    };
    const auto slope = [&](Floats x, std::size_t i, const std::function<double(const Floats&)>& f) {
      constexpr float kStep = 1e-2F;
      const float middle = x[i];
      x[i] = middle + kStep;
      const double up = f(x);
      x[i] = middle - kStep;
      return (up - f(x)) / (2.0 * double{kStep});
    };
    for (const std::size_t i : {std::size_t{0}, std::size_t{13}, std::size_t{77}}) {
      CHECK(dq[i] == doctest::Approx(slope(q, i, [&](const Floats& x) { return loss(x, k, v); })).epsilon(2e-3).scale(0.1));
      CHECK(dk[i] == doctest::Approx(slope(k, i, [&](const Floats& x) { return loss(q, x, v); })).epsilon(2e-3).scale(0.1));
      CHECK(dv[i] == doctest::Approx(slope(v, i, [&](const Floats& x) { return loss(q, k, x); })).epsilon(2e-3).scale(0.1));
    }
  }
}

// Step 1: m = 0.1 g, v = 0.001 g^2; both corrected are g and g^2: the parameter moves by rate * g / (|g| + epsilon) = rate.
TEST_CASE("executor: Adam's first steps by hand") {
  Floats p{1.0F, -2.0F};
  const Floats g{0.5F, -4.0F};
  Floats m(2);
  Floats v(2);
  adam({.rate = 0.1F}, 1, {p, g, m, v});
  CHECK(p[0] == doctest::Approx(0.9).epsilon(1e-5));
  CHECK(p[1] == doctest::Approx(-1.9).epsilon(1e-5));
  // Step 2 with the same gradient: corrected moments are the same again.
  adam({.rate = 0.1F, .weight_decay = 0.5F}, 2, {p, g, m, v});
  CHECK(p[0] == doctest::Approx(0.9 * 0.95 - 0.1).epsilon(1e-5));
}

// The bodies that devices without a fused kernel run, against the blocked one: the same numbers, two samples, grouped heads.
// Parts of several threads, and vector units with what is left over, are the same update to rounding.
TEST_CASE("executor: Adam on several threads") {
  constexpr std::size_t kCount = 1003;
  const Floats g = random_values(kCount, 3);
  const auto updated = [&](int threads) {
    Floats p = random_values(kCount, 4);
    Floats m(kCount, 0.01F);
    Floats v(kCount, 0.02F);
    adam({}, 1, {p, g, m, v}, 0.5F, threads);
    return p;
  };
  std::vector<double> expected;
  const Floats before = random_values(kCount, 4);
  const double beta1 = double{0.9F};
  const double beta2 = double{0.999F};
  for (std::size_t i = 0; i < kCount; ++i) {
    const double slope = 0.5 * double{g[i]};
    const double m = (beta1 * double{0.01F} + (1.0 - beta1) * slope) / (1.0 - beta1);
    const double v = (beta2 * double{0.02F} + (1.0 - beta2) * slope * slope) / (1.0 - beta2);
    expected.push_back(double{before[i]} - 1e-3 * m / (std::sqrt(v) + 1e-8));
  }
  for (const int threads : {1, 2, 3, 2000}) {
    CAPTURE(threads);
    CHECK(relative_distance(updated(threads), expected) < 1e-6);
  }
}

TEST_CASE("executor: attention row by row is attention") {
  const plan::AttentionShape s{2, 4, 2, 33, 33, 8, 8, true, std::nullopt};
  const std::int64_t width = 4 * 8 + 2 * 2 * 8;
  const std::int64_t rows = s.batch * s.kv_length;
  const Floats qkv = random_values(count(rows, width, 1), 7);
  const kernels::AttentionRows a{s.kv_length, s.query_heads, s.kv_heads, s.head_dim, width, qkv.data()};
  CpuMath math;
  Floats out(count(rows, 4, 8));
  Floats sums(count(rows, 4, 1));
  Floats out_rows(out.size());
  Floats sums_rows(sums.size());
  math.attention({s, qkv.data()}, out.data(), sums.data());
  for (std::int64_t i = 0; i < rows * s.query_heads; ++i) kernels::attention_row(i, a, out_rows.data(), sums_rows.data());
  CHECK(relative_distance(out_rows, out) < 1e-6);
  CHECK(relative_distance(sums_rows, sums) < 1e-6);

  const Floats dout = random_values(out.size(), 8);
  Floats d(qkv.size());
  Floats d_rows(qkv.size());
  math.attention_gradient({s, qkv.data()}, out.data(), sums.data(), dout.data(), d.data());
  const kernels::AttentionSlopes slopes{out.data(), sums.data(), dout.data()};
  for (std::int64_t i = 0; i < rows * s.query_heads; ++i) kernels::attention_query_gradient(i, a, slopes, d_rows.data());
  for (std::int64_t i = 0; i < rows * s.kv_heads; ++i) kernels::attention_key_gradient(i, a, slopes, d_rows.data());
  CHECK(relative_distance(d_rows, d) < 1e-5);
}
