// executor/common/product.hpp — a dense matrix product, row-major.
#pragma once

#include <compare>
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
  friend auto operator<=>(const Product&, const Product&) = default;
};

}  // namespace stepcast::executor
