#include "executor/cpu/gemm.hpp"

#include <Eigen/Core>

namespace stepcast::executor {
namespace {

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using In = Eigen::Map<const Matrix>;
using Out = Eigen::Map<Matrix>;

template <class A, class B>
void put(bool accumulates, const A& a, const B& b, Out c) {
  if (accumulates) {
    c.noalias() += a * b;
  } else {
    c.noalias() = a * b;
  }
}

template <class A>
void with(const Product& p, const A& a, const float* b, Out c) {
  if (p.b == Transpose::kYes) return put(p.accumulates, a, In{b, p.n, p.k}.transpose(), c);
  put(p.accumulates, a, In{b, p.k, p.n}, c);
}

}  // namespace

void multiply(const Product& p, const float* a, const float* b, float* c) {
  const Out out{c, p.m, p.n};
  if (p.a == Transpose::kYes) return with(p, In{a, p.k, p.m}.transpose(), b, out);
  with(p, In{a, p.m, p.k}, b, out);
}

void set_threads(int threads) { Eigen::setNbThreads(threads); }

}  // namespace stepcast::executor
