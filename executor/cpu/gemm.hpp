// executor/cpu/gemm.hpp — dense matrix products, row-major fp32, by Eigen.
#pragma once

#include "executor/common/product.hpp"

namespace stepcast::executor {

void multiply(const Product& product, const float* a, const float* b, float* c);

// Cores that a product of this process may use. All of them until called (Eigen over OpenMP).
void set_threads(int threads);

}  // namespace stepcast::executor
