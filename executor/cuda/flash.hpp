// executor/cuda/flash.hpp — attention by blocks on tensor cores (common/kernels/flash.hpp), bf16 and fp16.
//
// Cost     the products of flash attention: two forward, five backward; sums pass through shared memory, so that it is slower than kernels
//          that keep them in registers. Records say that it ran.
#pragma once

#include <cstdint>

#include <cuda_runtime.h>

#include "executor/common/kernels/flash.hpp"
#include "sim/plan/kernel.hpp"

namespace stepcast::executor::cuda {

// Widths in multiples of 16 whose tiles fit the GPU's shared memory, 16-bit elements.
bool flash_can(const kernels::FlashShape& shape, plan::Dtype dtype);

// [batch, length, heads, width] in `dtype`; log_sums [batch, query_heads, query_length]. All return at once.
struct FlashTensors {
  const void* q = nullptr;
  const void* k = nullptr;
  const void* v = nullptr;
  void* out = nullptr;
  float* log_sums = nullptr;
};
void flash_forward(cudaStream_t stream, plan::Dtype dtype, const kernels::FlashShape& shape, const FlashTensors& tensors);

struct FlashGradients {
  const void* dout = nullptr;
  float* delta = nullptr;  // scratch, as long as log_sums
  float* dq = nullptr;     // fp32
  void* dk = nullptr;
  void* dv = nullptr;
};
void flash_backward(cudaStream_t stream, plan::Dtype dtype, const kernels::FlashShape& shape, const FlashTensors& tensors, const FlashGradients& gradients);

}  // namespace stepcast::executor::cuda
