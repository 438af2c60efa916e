// executor/cuda/kernels.hpp — launches of kernel bodies (common/kernels) and of the streaming kernels that stand for a plan's memory-bound
// operators. All return at once; the work runs on `stream`.
#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda_runtime.h>

#include "executor/common/kernels/adam.hpp"
#include "executor/common/kernels/attention.hpp"
#include "executor/common/kernels/norm.hpp"
#include "executor/common/kernels/rotary.hpp"
#include "executor/common/kernels/vocabulary.hpp"
#include "sim/plan/kernel.hpp"

namespace stepcast::executor::cuda {

void fill(cudaStream_t stream, float* data, std::size_t count, float value);
// Uniform in [-1, 1), by index and seed.
void randomize(cudaStream_t stream, plan::Dtype dtype, void* data, std::size_t count, std::uint64_t seed);
void add(cudaStream_t stream, const float* a, const float* b, float* sum, std::size_t count);
void norm(cudaStream_t stream, const kernels::Norm& norm, float* y, float* inverse);
void norm_gradient(cudaStream_t stream, const kernels::Norm& norm, const float* inverse, const float* dy, float* dx, float* dgain);
void rotate(cudaStream_t stream, const kernels::Rotary& rotary, std::int64_t rows, float* data);
void attention(cudaStream_t stream, const kernels::AttentionRows& rows, std::int64_t count, float* out, float* log_sums);
void attention_gradient(cudaStream_t stream, const kernels::AttentionRows& rows, std::int64_t count, const kernels::AttentionSlopes& slopes, float* dqkv);
void swiglu(cudaStream_t stream, std::int64_t rows, std::int64_t width, const float* u, float* a);
void swiglu_gradient(cudaStream_t stream, std::int64_t rows, std::int64_t width, const float* u, const float* da, float* du);
void embed(cudaStream_t stream, std::int64_t rows, std::int64_t width, const kernels::Band& band, const std::int32_t* tokens, const float* table, float* out);
void embed_gradient(cudaStream_t stream, std::int64_t rows, std::int64_t width, const kernels::Band& band, const std::int32_t* tokens, const float* dout, float* dtable);
void loss(cudaStream_t stream, std::int64_t rows, const kernels::Band& band, const std::int32_t* labels, const float* logits, const kernels::LossRows& out);
void loss_gradient(cudaStream_t stream, std::int64_t rows, const kernels::Band& band, const std::int32_t* labels, const kernels::LossRows& in, float scale, float* logits);
void rescale(cudaStream_t stream, std::size_t rows, const float* own, const float* all, float* sums);
void adam(cudaStream_t stream, const kernels::AdamStep& step, std::size_t count, float* p, const float* g, float* m, float* v);
void add_squares(cudaStream_t stream, const float* data, std::size_t count, float* sum);

// The stream waits until *released, in memory that the host and the device see, is not 0; two seconds at most.
void hold_stream(cudaStream_t stream, const int* released);

// Reads and writes so many bytes once, 16 a thread and step, with an exponential for each element where asked.
void stream_bytes(cudaStream_t stream, const void* in, std::size_t read, void* out, std::size_t written, bool exponential);

}  // namespace stepcast::executor::cuda
