#include "executor/cpu/cpu_math.hpp"

#include <algorithm>
#include <cmath>

#include "executor/common/kernels/elementwise.hpp"
#include "executor/cpu/attention.hpp"
#include "executor/cpu/gemm.hpp"

namespace stepcast::executor {
namespace {

template <class Do>
void for_index(std::int64_t count, Do&& each) {
  for (std::int64_t i = 0; i < count; ++i) each(i);
}

AttentionInputs inputs_of(const HeadsSideBySide& heads) {
  const plan::AttentionShape& s = heads.shape;
  const std::int64_t q = s.query_heads * s.head_dim;
  const std::int64_t k = s.kv_heads * s.head_dim;
  return {heads.qkv, heads.qkv + q, heads.qkv + q + k, q + k + s.kv_heads * s.value_dim};
}

}  // namespace

float* CpuMath::floats(std::size_t count) { return floats_.emplace_back(std::make_unique<float[]>(count)).get(); }
std::int32_t* CpuMath::tokens(std::size_t count) { return tokens_.emplace_back(std::make_unique<std::int32_t[]>(count)).get(); }
void CpuMath::upload(std::span<const float> from, float* to) { std::copy(from.begin(), from.end(), to); }
void CpuMath::upload(std::span<const std::int32_t> from, std::int32_t* to) { std::copy(from.begin(), from.end(), to); }
void CpuMath::download(const float* from, std::span<float> to) { std::copy_n(from, to.size(), to.begin()); }

void CpuMath::fill(float* data, std::size_t count, float value) { std::fill_n(data, count, value); }
void CpuMath::copy(const float* from, float* to, std::size_t count) { std::copy_n(from, count, to); }
void CpuMath::add(const float* a, const float* b, float* sum, std::size_t count) {
  for_index(static_cast<std::int64_t>(count), [&](std::int64_t i) { kernels::add(i, a, b, sum); });
}
void CpuMath::multiply(const Product& product, const float* a, const float* b, float* c) { executor::multiply(product, a, b, c); }

void CpuMath::norm(const kernels::Norm& norm, float* y, float* inverse) {
  for_index(norm.rows, [&](std::int64_t row) { kernels::norm_row(row, norm, y, inverse); });
}
void CpuMath::norm_gradient(const kernels::Norm& norm, const float* inverse, const float* dy, float* dx, float* dgain) {
  for_index(norm.width, [&](std::int64_t column) { kernels::norm_gain_gradient(column, norm, inverse, dy, dgain); });
  for_index(norm.rows, [&](std::int64_t row) { kernels::norm_gradient_row(row, norm, inverse, dy, dx); });
}
void CpuMath::rotate(const kernels::Rotary& rotary, std::int64_t rows, float* data) {
  for_index(rows * rotary.heads * rotary.dim / 2, [&](std::int64_t i) { kernels::rotate_pair(i, rotary, data); });
}

void CpuMath::attention(const HeadsSideBySide& heads, float* out, float* log_sums) { attention_forward(heads.shape, inputs_of(heads), out, log_sums); }
void CpuMath::attention_gradient(const HeadsSideBySide& heads, const float* out, const float* log_sums, const float* dout, float* dqkv) {
  const AttentionInputs in = inputs_of(heads);
  attention_backward(heads.shape, in, out, log_sums, dout, {dqkv, dqkv + (in.k - in.q), dqkv + (in.v - in.q), in.stride});
}

void CpuMath::swiglu(std::int64_t rows, std::int64_t width, const float* u, float* a) {
  for_index(rows * width, [&](std::int64_t i) { kernels::swiglu(i, width, u, a); });
}
void CpuMath::swiglu_gradient(std::int64_t rows, std::int64_t width, const float* u, const float* da, float* du) {
  for_index(rows * width, [&](std::int64_t i) { kernels::swiglu_gradient(i, width, u, da, du); });
}

void CpuMath::embed(std::int64_t rows, std::int64_t width, const kernels::Band& band, const std::int32_t* tokens, const float* table, float* out) {
  for_index(rows * width, [&](std::int64_t i) { kernels::embed(i, width, band, tokens, table, out); });
}
void CpuMath::embed_gradient(std::int64_t rows, std::int64_t width, const kernels::Band& band, const std::int32_t* tokens, const float* dout, float* dtable) {
  for_index(width, [&](std::int64_t column) { kernels::embed_gradient(column, rows, width, band, tokens, dout, dtable); });
}
void CpuMath::loss(std::int64_t rows, const kernels::Band& band, const std::int32_t* labels, const float* logits, const kernels::LossRows& out) {
  for_index(rows, [&](std::int64_t row) { kernels::loss_row(row, band, labels, logits, out); });
}
void CpuMath::loss_gradient(std::int64_t rows, const kernels::Band& band, const std::int32_t* labels, const kernels::LossRows& in, float scale, float* logits) {
  for_index(rows, [&](std::int64_t row) { kernels::loss_gradient_row(row, band, labels, in, scale, logits); });
}
void CpuMath::rescale(std::size_t rows, const float* own, const float* all, float* sums) {
  for (std::size_t i = 0; i < rows; ++i) sums[i] *= std::exp(own[i] - all[i]);
}
void CpuMath::adam(const kernels::AdamStep& step, std::size_t count, float* p, const float* g, float* m, float* v) {
  for_index(static_cast<std::int64_t>(count), [&](std::int64_t i) { kernels::adam_element(i, step, p, g, m, v); });
}
void CpuMath::add_squares(const float* data, std::size_t count, float* sum) {
  double squares = 0.0;
  for (std::size_t i = 0; i < count; ++i) squares += double{data[i]} * double{data[i]};
  *sum += static_cast<float>(squares);
}

}  // namespace stepcast::executor
