// executor/cuda/matmul.hpp — matrix products by cuBLASLt: bf16, fp16, tf32, fp32, fp8 (E4M3, results in bf16). The library's first choice for
// a shape is looked up once and kept.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "executor/common/product.hpp"
#include "executor/cuda/check.hpp"
#include "sim/plan/kernel.hpp"

namespace stepcast::executor::cuda {

class Matmul {
 public:
  // A workspace a stream: products of different streams run side by side.
  explicit Matmul(std::size_t streams);
  ~Matmul();
  Matmul(const Matmul&) = delete;
  Matmul& operator=(const Matmul&) = delete;

  // Row-major, `batch` products one behind the other. fp8 wants A as it is and B transposed (K-major), sides in multiples of 16. Throws
  // NotSupported where the library has no algorithm.
  void multiply(std::size_t stream_index, cudaStream_t stream, plan::Dtype dtype, std::int64_t batch, const Product& product, const void* a, const void* b, void* c);

 private:
  struct Prepared;
  struct Key {
    plan::Dtype dtype;
    std::int64_t batch;
    Product product;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  Prepared& prepare(const Key& key);

  cublasLtHandle_t handle_ = nullptr;
  std::vector<void*> workspaces_;
  void* scale_ = nullptr;  // 1.0F, of fp8 operands
  std::map<Key, std::unique_ptr<Prepared>> prepared_;
};

// Of results.
plan::Dtype result_dtype(plan::Dtype dtype);

}  // namespace stepcast::executor::cuda
