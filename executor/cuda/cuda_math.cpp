#include "executor/cuda/cuda_math.hpp"

#include <algorithm>

#include "executor/cuda/kernels.hpp"

namespace stepcast::executor::cuda {
namespace {

kernels::AttentionRows rows_of(const HeadsSideBySide& heads) {
  const plan::AttentionShape& s = heads.shape;
  return {s.kv_length, s.query_heads, s.kv_heads, s.head_dim, (s.query_heads + 2 * s.kv_heads) * s.head_dim, heads.qkv};
}

}  // namespace

CudaMath::~CudaMath() {
  for (void* block : blocks_) cudaFree(block);
}

void* CudaMath::take(std::size_t bytes) {
  void* block = nullptr;
  STEPCAST_CUDA(cudaMalloc(&block, std::max<std::size_t>(bytes, 16)));
  blocks_.push_back(block);
  STEPCAST_CUDA(cudaMemset(block, 0, bytes));
  return block;
}

float* CudaMath::floats(std::size_t count) { return static_cast<float*>(take(count * sizeof(float))); }
std::int32_t* CudaMath::tokens(std::size_t count) { return static_cast<std::int32_t*>(take(count * sizeof(std::int32_t))); }
void CudaMath::upload(std::span<const float> from, float* to) { STEPCAST_CUDA(cudaMemcpy(to, from.data(), from.size_bytes(), cudaMemcpyHostToDevice)); }
void CudaMath::upload(std::span<const std::int32_t> from, std::int32_t* to) { STEPCAST_CUDA(cudaMemcpy(to, from.data(), from.size_bytes(), cudaMemcpyHostToDevice)); }
void CudaMath::download(const float* from, std::span<float> to) {
  STEPCAST_CUDA(cudaMemcpyAsync(to.data(), from, to.size_bytes(), cudaMemcpyDeviceToHost, stream()));
  STEPCAST_CUDA(cudaStreamSynchronize(stream()));
}

void CudaMath::fill(float* data, std::size_t count, float value) { cuda::fill(stream(), data, count, value); }
void CudaMath::copy(const float* from, float* to, std::size_t count) {
  STEPCAST_CUDA(cudaMemcpyAsync(to, from, count * sizeof(float), cudaMemcpyDeviceToDevice, stream()));
}
void CudaMath::add(const float* a, const float* b, float* sum, std::size_t count) { cuda::add(stream(), a, b, sum, count); }
void CudaMath::multiply(const Product& product, const float* a, const float* b, float* c) {
  matmul_.multiply(current_, stream(), plan::Dtype::kFp32, 1, product, a, b, c);
}
void CudaMath::norm(const kernels::Norm& norm, float* y, float* inverse) { cuda::norm(stream(), norm, y, inverse); }
void CudaMath::norm_gradient(const kernels::Norm& norm, const float* inverse, const float* dy, float* dx, float* dgain) {
  cuda::norm_gradient(stream(), norm, inverse, dy, dx, dgain);
}
void CudaMath::rotate(const kernels::Rotary& rotary, std::int64_t rows, float* data) { cuda::rotate(stream(), rotary, rows, data); }
void CudaMath::attention(const HeadsSideBySide& heads, float* out, float* log_sums) {
  cuda::attention(stream(), rows_of(heads), heads.shape.batch * heads.shape.query_length, out, log_sums);
}
void CudaMath::attention_gradient(const HeadsSideBySide& heads, const float* out, const float* log_sums, const float* dout, float* dqkv) {
  cuda::attention_gradient(stream(), rows_of(heads), heads.shape.batch * heads.shape.query_length, {out, log_sums, dout}, dqkv);
}
void CudaMath::swiglu(std::int64_t rows, std::int64_t width, const float* u, float* a) { cuda::swiglu(stream(), rows, width, u, a); }
void CudaMath::swiglu_gradient(std::int64_t rows, std::int64_t width, const float* u, const float* da, float* du) { cuda::swiglu_gradient(stream(), rows, width, u, da, du); }
void CudaMath::embed(std::int64_t rows, std::int64_t width, const kernels::Band& band, const std::int32_t* tokens, const float* table, float* out) {
  cuda::embed(stream(), rows, width, band, tokens, table, out);
}
void CudaMath::embed_gradient(std::int64_t rows, std::int64_t width, const kernels::Band& band, const std::int32_t* tokens, const float* dout, float* dtable) {
  cuda::embed_gradient(stream(), rows, width, band, tokens, dout, dtable);
}
void CudaMath::loss(std::int64_t rows, const kernels::Band& band, const std::int32_t* labels, const float* logits, const kernels::LossRows& out) {
  cuda::loss(stream(), rows, band, labels, logits, out);
}
void CudaMath::loss_gradient(std::int64_t rows, const kernels::Band& band, const std::int32_t* labels, const kernels::LossRows& in, float scale, float* logits) {
  cuda::loss_gradient(stream(), rows, band, labels, in, scale, logits);
}
void CudaMath::rescale(std::size_t rows, const float* own, const float* all, float* sums) { cuda::rescale(stream(), rows, own, all, sums); }
void CudaMath::adam(const kernels::AdamStep& step, std::size_t count, float* p, const float* g, float* m, float* v) { cuda::adam(stream(), step, count, p, g, m, v); }
void CudaMath::add_squares(const float* data, std::size_t count, float* sum) { cuda::add_squares(stream(), data, count, sum); }

}  // namespace stepcast::executor::cuda
