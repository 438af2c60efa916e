// executor/cpu/gemm.hpp — dense matrix products, row-major fp32, by Eigen.
#pragma once

#include <cstdint>

namespace stepcast::executor {

enum class Transpose : std::uint8_t { kNo, kYes };

// C[m,n] = op(A)[m,k] op(B)[k,n], added to C where `accumulates`. A transposed operand is stored [k,m] or [n,k].
struct Product {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  Transpose a = Transpose::kNo;
  Transpose b = Transpose::kNo;
  bool accumulates = false;
};
void multiply(const Product& product, const float* a, const float* b, float* c);

// Cores that a product of this process may use. 1 until called.
void set_threads(int threads);

}  // namespace stepcast::executor
