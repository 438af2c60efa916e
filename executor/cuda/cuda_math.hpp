// executor/cuda/cuda_math.hpp — a transformer's arithmetic on a GPU: kernel bodies shared with the CPU, products by cuBLASLt in fp32,
// attention by the row-wise body (correct, without tensor cores).
#pragma once

#include <vector>

#include "executor/common/math.hpp"
#include "executor/cuda/matmul.hpp"
#include "executor/cuda/streams.hpp"

namespace stepcast::executor::cuda {

class CudaMath : public Math {
 public:
  CudaMath(const Streams& streams, Matmul& matmul) : streams_{streams}, matmul_{matmul} {}
  ~CudaMath() override;

  void on(std::size_t stream) override { current_ = stream; }
  float* floats(std::size_t count) override;
  std::int32_t* tokens(std::size_t count) override;
  void upload(std::span<const float> from, float* to) override;
  void upload(std::span<const std::int32_t> from, std::int32_t* to) override;
  void download(const float* from, std::span<float> to) override;

  void fill(float* data, std::size_t count, float value) override;
  void copy(const float* from, float* to, std::size_t count) override;
  void add(const float* a, const float* b, float* sum, std::size_t count) override;
  void multiply(const Product& product, const float* a, const float* b, float* c) override;
  void norm(const kernels::Norm& norm, float* y, float* inverse) override;
  void norm_gradient(const kernels::Norm& norm, const float* inverse, const float* dy, float* dx, float* dgain) override;
  void rotate(const kernels::Rotary& rotary, std::int64_t rows, float* data) override;
  void attention(const HeadsSideBySide& heads, float* out, float* log_sums) override;
  void attention_gradient(const HeadsSideBySide& heads, const float* out, const float* log_sums, const float* dout, float* dqkv) override;
  void swiglu(std::int64_t rows, std::int64_t width, const float* u, float* a) override;
  void swiglu_gradient(std::int64_t rows, std::int64_t width, const float* u, const float* da, float* du) override;
  void embed(std::int64_t rows, std::int64_t width, const kernels::Band& band, const std::int32_t* tokens, const float* table, float* out) override;
  void embed_gradient(std::int64_t rows, std::int64_t width, const kernels::Band& band, const std::int32_t* tokens, const float* dout, float* dtable) override;
  void loss(std::int64_t rows, const kernels::Band& band, const std::int32_t* labels, const float* logits, const kernels::LossRows& out) override;
  void loss_gradient(std::int64_t rows, const kernels::Band& band, const std::int32_t* labels, const kernels::LossRows& in, float scale, float* logits) override;
  void rescale(std::size_t rows, const float* own, const float* all, float* sums) override;
  void adam(const kernels::AdamStep& step, std::size_t count, float* p, const float* g, float* m, float* v) override;
  void add_squares(const float* data, std::size_t count, float* sum) override;

 private:
  [[nodiscard]] cudaStream_t stream() const { return streams_[current_]; }
  void* take(std::size_t bytes);

  const Streams& streams_;
  Matmul& matmul_;
  std::size_t current_ = 0;
  std::vector<void*> blocks_;
};

}  // namespace stepcast::executor::cuda
