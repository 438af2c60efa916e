#include "executor/common/host_adam.hpp"

#include <algorithm>

#include "sim/base/check.hpp"

// Vector units as this machine has them, found when the program runs: a worker is copied from where it was built.
#if defined(__x86_64__) && defined(__GNUC__)
#define STEPCAST_VECTORS(units) __attribute__((target(units), optimize("O3", "no-math-errno")))
#define STEPCAST_PLAIN __attribute__((optimize("O3", "no-math-errno")))
#else
#define STEPCAST_PLAIN
#endif

namespace stepcast::executor {
namespace {

struct Rows {
  float* p;
  const float* g;
  float* m;
  float* v;
};
using Range = void (*)(std::int64_t begin, std::int64_t end, const kernels::AdamStep& step, const Rows& rows);

STEPCAST_PLAIN void plain(std::int64_t begin, std::int64_t end, const kernels::AdamStep& step, const Rows& r) {
  for (std::int64_t i = begin; i < end; ++i) kernels::adam_element(i, step, r.p, r.g, r.m, r.v);
}

#ifdef STEPCAST_VECTORS
STEPCAST_VECTORS("avx2,fma") void by_8(std::int64_t begin, std::int64_t end, const kernels::AdamStep& step, const Rows& r) {
  for (std::int64_t i = begin; i < end; ++i) kernels::adam_element(i, step, r.p, r.g, r.m, r.v);
}
STEPCAST_VECTORS("avx512f,fma,prefer-vector-width=512") void by_16(std::int64_t begin, std::int64_t end, const kernels::AdamStep& step, const Rows& r) {
  for (std::int64_t i = begin; i < end; ++i) kernels::adam_element(i, step, r.p, r.g, r.m, r.v);
}
#endif

Range range_here() {
#ifdef STEPCAST_VECTORS
  if (__builtin_cpu_supports("avx512f")) return by_16;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return by_8;
#endif
  return plain;
}

}  // namespace

void adam(const AdamSettings& settings, std::int64_t step, const AdamState& state, float gradient_scale, int threads) {
  const std::size_t n = state.parameters.size();
  SIM_CHECK(state.gradients.size() == n && state.first.size() == n && state.second.size() == n, n);
  const kernels::AdamStep shared = kernels::adam_step(settings, step, gradient_scale);
  const Rows rows{state.parameters.data(), state.gradients.data(), state.first.data(), state.second.data()};
  const Range range = range_here();
  const auto count = static_cast<std::int64_t>(n);
  const std::int64_t parts = std::max(1, threads);
#pragma omp parallel for num_threads(static_cast<int>(parts)) schedule(static) if (parts > 1)
  for (std::int64_t part = 0; part < parts; ++part) range(count * part / parts, count * (part + 1) / parts, shared, rows);
}

}  // namespace stepcast::executor
