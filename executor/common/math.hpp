// executor/common/math.hpp — the arithmetic of a transformer on a device's memory: what the CPU and CUDA backends each provide. fp32,
// row-major. Kernel bodies are shared (common/kernels); matrix products and attention are the backend's own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "executor/common/kernels/adam.hpp"
#include "executor/common/kernels/norm.hpp"
#include "executor/common/kernels/rotary.hpp"
#include "executor/common/kernels/vocabulary.hpp"
#include "executor/common/product.hpp"
#include "sim/plan/kernel.hpp"

namespace stepcast::executor {

// Queries, keys and values side by side in a row: [rows, (heads + 2 kv_heads) * dim].
struct HeadsSideBySide {
  plan::AttentionShape shape;
  const float* qkv = nullptr;
};

class Math {
 public:
  Math() = default;
  Math(const Math&) = delete;
  Math& operator=(const Math&) = delete;
  virtual ~Math() = default;

  // What follows runs on this stream of the plan. Backends whose calls run at once do not care.
  virtual void on(std::size_t) {}

  // Zeroed memory of the device, freed with the Math.
  virtual float* floats(std::size_t count) = 0;
  virtual std::int32_t* tokens(std::size_t count) = 0;
  virtual void upload(std::span<const float> from, float* to) = 0;
  virtual void upload(std::span<const std::int32_t> from, std::int32_t* to) = 0;
  virtual void download(const float* from, std::span<float> to) = 0;

  virtual void fill(float* data, std::size_t count, float value) = 0;
  virtual void copy(const float* from, float* to, std::size_t count) = 0;
  virtual void add(const float* a, const float* b, float* sum, std::size_t count) = 0;
  virtual void multiply(const Product& product, const float* a, const float* b, float* c) = 0;
  virtual void norm(const kernels::Norm& norm, float* y, float* inverse) = 0;
  virtual void norm_gradient(const kernels::Norm& norm, const float* inverse, const float* dy, float* dx, float* dgain) = 0;
  virtual void rotate(const kernels::Rotary& rotary, std::int64_t rows, float* data) = 0;
  virtual void attention(const HeadsSideBySide& heads, float* out, float* log_sums) = 0;
  virtual void attention_gradient(const HeadsSideBySide& heads, const float* out, const float* log_sums, const float* dout, float* dqkv) = 0;
  virtual void swiglu(std::int64_t rows, std::int64_t width, const float* u, float* a) = 0;
  virtual void swiglu_gradient(std::int64_t rows, std::int64_t width, const float* u, const float* da, float* du) = 0;
  virtual void embed(std::int64_t rows, std::int64_t width, const kernels::Band& band, const std::int32_t* tokens, const float* table, float* out) = 0;
  virtual void embed_gradient(std::int64_t rows, std::int64_t width, const kernels::Band& band, const std::int32_t* tokens, const float* dout, float* dtable) = 0;
  virtual void loss(std::int64_t rows, const kernels::Band& band, const std::int32_t* labels, const float* logits, const kernels::LossRows& out) = 0;
  virtual void loss_gradient(std::int64_t rows, const kernels::Band& band, const std::int32_t* labels, const kernels::LossRows& in, float scale, float* logits) = 0;
  // sums[i] *= exp(own[i] - all[i]): sums over one's own largest, now over everybody's.
  virtual void rescale(std::size_t rows, const float* own, const float* all, float* sums) = 0;
  virtual void adam(const kernels::AdamStep& step, std::size_t count, float* p, const float* g, float* m, float* v) = 0;
  // Added to *sum, which lies in the device's memory.
  virtual void add_squares(const float* data, std::size_t count, float* sum) = 0;
};

}  // namespace stepcast::executor
