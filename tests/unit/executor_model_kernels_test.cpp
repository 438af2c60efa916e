// The kernel bodies of the trained model (executor/common/kernels), called as CPUs call them, against double precision; gradients against
// central differences of what they are gradients of. Sizes are odd, outputs poisoned.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "executor/cpu/cpu_math.hpp"
#include "tests/support/random_values.hpp"
#include "tests/support/relative_distance.hpp"

using namespace stepcast;
using namespace stepcast::executor;
using stepcast::test::random_values;
using stepcast::test::relative_distance;

TEST_SUITE_BEGIN("unit");

namespace {

using Floats = std::vector<float>;
using Doubles = std::vector<double>;

Floats poison(std::size_t count) { return Floats(count, std::numeric_limits<float>::quiet_NaN()); }
Doubles wide(const Floats& values) { return {values.begin(), values.end()}; }

// Of sum(weights * f(x)), by each element of x.
Doubles slopes(const std::function<Doubles(const Doubles&)>& f, Doubles x, const Floats& weights) {
  constexpr double kStep = 1e-5;
  const auto value = [&] {
    const Doubles y = f(x);
    double sum = 0.0;
    for (std::size_t i = 0; i < y.size(); ++i) sum += y[i] * double{weights[i]};
    return sum;
  };
  Doubles slope(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double kept = x[i];
    x[i] = kept + kStep;
    const double above = value();
    x[i] = kept - kStep;
    slope[i] = (above - value()) / (2.0 * kStep);
    x[i] = kept;
  }
  return slope;
}

constexpr std::int64_t kRows = 5;
constexpr std::int64_t kWidth = 7;
constexpr std::size_t kSize = 35;

Doubles norm_of(const Doubles& x, const Doubles& gain) {
  Doubles y(x.size());
  for (std::size_t row = 0; row < x.size() / gain.size(); ++row) {
    double squares = 0.0;
    for (std::size_t i = 0; i < gain.size(); ++i) squares += x[row * gain.size() + i] * x[row * gain.size() + i];
    const double r = 1.0 / std::sqrt(squares / static_cast<double>(gain.size()) + double{kernels::kNormEpsilon});
    for (std::size_t i = 0; i < gain.size(); ++i) y[row * gain.size() + i] = gain[i] * x[row * gain.size() + i] * r;
  }
  return y;
}

Doubles swiglu_of(const Doubles& u) {
  const auto width = static_cast<std::size_t>(kWidth);
  Doubles a(u.size() / 2);
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double gate = u[i / width * 2 * width + i % width];
    a[i] = gate / (1.0 + std::exp(-gate)) * u[i / width * 2 * width + i % width + width];
  }
  return a;
}

}  // namespace

TEST_CASE("executor: norms and their gradients, by row and by gain") {
  CpuMath math;
  const Floats x = random_values(kSize, 1);
  const Floats gain = random_values(kWidth, 2);
  const Floats dy = random_values(kSize, 3);
  const kernels::Norm norm{kRows, kWidth, x.data(), gain.data()};
  Floats y = poison(kSize);
  Floats inverse = poison(kRows);
  math.norm(norm, y.data(), inverse.data());
  CHECK(relative_distance(y, norm_of(wide(x), wide(gain))) < 1e-6);
  Floats dx = poison(kSize);
  Floats dgain(kWidth, 0.25F);  // added to
  math.norm_gradient(norm, inverse.data(), dy.data(), dx.data(), dgain.data());
  CHECK(relative_distance(dx, slopes([&](const Doubles& v) { return norm_of(v, wide(gain)); }, wide(x), dy)) < 1e-5);
  Doubles expected = slopes([&](const Doubles& v) { return norm_of(wide(x), v); }, wide(gain), dy);
  for (double& v : expected) v += 0.25;
  CHECK(relative_distance(dgain, expected) < 1e-5);
}

// Two heads of 4 in rows of 11: pairs (0, 2) and (1, 3) turn by position * 10000^(-2 pair / 4); the rest of a row stays.
TEST_CASE("executor: rotary positions turn pairs by position, and back") {
  CpuMath math;
  constexpr std::int64_t kLine = 11;
  const Floats before = random_values(2 * 3 * kLine, 4);
  Floats rows = before;
  math.rotate({3, 2, 4, kLine, 1.0F}, 6, rows.data());
  Doubles expected = wide(before);
  for (std::size_t row = 0; row < 6; ++row) {
    for (std::size_t head = 0; head < 2; ++head) {
      for (std::size_t pair = 0; pair < 2; ++pair) {
        const double angle = static_cast<double>(row % 3) * std::pow(10000.0, -2.0 * static_cast<double>(pair) / 4.0);
        const std::size_t at = row * kLine + head * 4 + pair;
        const double a = double{before[at]};
        const double b = double{before[at + 2]};
        expected[at] = a * std::cos(angle) - b * std::sin(angle);
        expected[at + 2] = a * std::sin(angle) + b * std::cos(angle);
      }
    }
  }
  CHECK(relative_distance(rows, expected) < 1e-6);
  math.rotate({3, 2, 4, kLine, -1.0F}, 6, rows.data());
  CHECK(relative_distance(rows, before) < 1e-6);
}

TEST_CASE("executor: SwiGLU and its gradient") {
  CpuMath math;
  const Floats u = random_values(2 * kSize, 5);
  const Floats da = random_values(kSize, 6);
  Floats a = poison(kSize);
  math.swiglu(kRows, kWidth, u.data(), a.data());
  CHECK(relative_distance(a, swiglu_of(wide(u))) < 1e-6);
  Floats du = poison(2 * kSize);
  math.swiglu_gradient(kRows, kWidth, u.data(), da.data(), du.data());
  CHECK(relative_distance(du, slopes(swiglu_of, wide(u), da)) < 1e-5);
}

// A table of 8 rows held by two ranks, 5 and 3 of them: their parts add up.
TEST_CASE("executor: embeddings of two ranks add up, and so do their gradients") {
  CpuMath math;
  const std::vector<std::int32_t> tokens{0, 7, 4, 5, 4};
  const Floats table = random_values(8 * kWidth, 7);
  const Floats dout = random_values(kSize, 8);
  Floats out(kSize, 0.0F);
  Floats dtable;
  for (const kernels::Band& band : {kernels::Band{0, 5}, kernels::Band{5, 3}}) {
    Floats part = poison(kSize);
    math.embed(kRows, kWidth, band, tokens.data(), table.data() + band.first * kWidth, part.data());
    math.add(out.data(), part.data(), out.data(), kSize);
    Floats slope(static_cast<std::size_t>(band.count * kWidth), 0.0F);
    math.embed_gradient(kRows, kWidth, band, tokens.data(), dout.data(), slope.data());
    dtable.insert(dtable.end(), slope.begin(), slope.end());
  }
  Doubles expected(kSize);
  Doubles expected_slope(8 * kWidth, 0.0);
  for (std::size_t i = 0; i < kSize; ++i) {
    const std::size_t at = static_cast<std::size_t>(tokens[i / kWidth]) * kWidth + i % kWidth;
    expected[i] = double{table[at]};
    expected_slope[at] += double{dout[i]};
  }
  CHECK(relative_distance(out, expected) == 0.0);
  CHECK(relative_distance(dtable, expected_slope) < 1e-6);
}

// Logits of 8 words cut for two ranks: largest, label and sum meet as the collectives of a plan make them meet.
TEST_CASE("executor: the loss over a cut vocabulary, and its gradient") {
  CpuMath math;
  constexpr std::size_t kWords = 8;
  const std::vector<std::int32_t> labels{0, 7, 4, 5, 3};
  const Floats logits = random_values(kRows * kWords, 9);
  const std::vector<kernels::Band> bands{{0, 5}, {5, 3}};
  std::vector<Floats> parts;
  std::vector<Floats> most, label, sum;
  for (const kernels::Band& band : bands) {
    Floats part;
    for (std::size_t row = 0; row < kRows; ++row) {
      for (std::int64_t w = 0; w < band.count; ++w) part.push_back(4.0F * logits[row * kWords + static_cast<std::size_t>(band.first + w)]);
    }
    most.push_back(poison(kRows));
    label.push_back(poison(kRows));
    sum.push_back(poison(kRows));
    math.loss(kRows, band, labels.data(), part.data(), {most.back().data(), label.back().data(), sum.back().data()});
    parts.push_back(std::move(part));
  }
  Floats all(kRows);
  for (std::size_t row = 0; row < kRows; ++row) all[row] = std::max(most[0][row], most[1][row]);
  for (std::size_t r = 0; r < 2; ++r) math.rescale(kRows, most[r].data(), all.data(), sum[r].data());
  Floats whole_sum(kRows);
  Floats whole_label(kRows);
  math.add(sum[0].data(), sum[1].data(), whole_sum.data(), kRows);
  math.add(label[0].data(), label[1].data(), whole_label.data(), kRows);
  Doubles losses;
  Doubles slope(kRows * kWords);
  Floats found;
  for (std::size_t row = 0; row < kRows; ++row) {
    double exponentials = 0.0;
    for (std::size_t w = 0; w < kWords; ++w) exponentials += std::exp(4.0 * double{logits[row * kWords + w]});
    losses.push_back(std::log(exponentials) - 4.0 * double{logits[row * kWords + static_cast<std::size_t>(labels[row])]});
    found.push_back(std::log(whole_sum[row]) + all[row] - whole_label[row]);
    for (std::size_t w = 0; w < kWords; ++w) {
      slope[row * kWords + w] = 0.5 * (std::exp(4.0 * double{logits[row * kWords + w]}) / exponentials - (static_cast<std::size_t>(labels[row]) == w ? 1.0 : 0.0));
    }
  }
  CHECK(relative_distance(found, losses) < 1e-6);
  Floats found_slope(kRows * kWords);
  for (std::size_t r = 0; r < 2; ++r) {
    math.loss_gradient(kRows, bands[r], labels.data(), {all.data(), whole_label.data(), whole_sum.data()}, 0.5F, parts[r].data());
    for (std::size_t row = 0; row < kRows; ++row) {
      for (std::int64_t w = 0; w < bands[r].count; ++w) {
        found_slope[row * kWords + static_cast<std::size_t>(bands[r].first + w)] = parts[r][row * static_cast<std::size_t>(bands[r].count) + static_cast<std::size_t>(w)];
      }
    }
  }
  CHECK(relative_distance(found_slope, slope) < 1e-6);
}

TEST_CASE("executor: sums of squares are added to what is there") {
  CpuMath math;
  const Floats x = random_values(kSize, 10);
  double squares = 2.0;
  for (const float v : x) squares += double{v} * double{v};
  float sum = 2.0F;
  math.add_squares(x.data(), kSize, &sum);
  CHECK(double{sum} == doctest::Approx(squares).epsilon(1e-6));
}
