#include "executor/cuda/flash.hpp"

#include <algorithm>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

#include "executor/cuda/check.hpp"

namespace stepcast::executor::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kLanes = 32;
constexpr int kWarps = kThreads / kLanes;

namespace wmma = nvcuda::wmma;
using kernels::kStep;

template <bool transposed>
struct Order {
  using type = wmma::row_major;
};
template <>
struct Order<true> {
  using type = wmma::col_major;
};

// A thread block. Every thread calls every function.
class Block {
 public:
  template <class F>
  __device__ void each(int count, F&& f) {
    for (int i = static_cast<int>(threadIdx.x); i < count; i += kThreads) f(i);
  }
  // A warp a row.
  template <class F>
  __device__ void each_row(int rows, F&& f) {
    for (int row = warp(); row < rows; row += kWarps) f(row, static_cast<int>(threadIdx.x) % kLanes, kLanes);
  }
  __device__ float most(float x) {
    for (int half = kLanes / 2; half > 0; half /= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffffU, x, half));
    return x;
  }
  __device__ float sum(float x) {
    for (int half = kLanes / 2; half > 0; half /= 2) x += __shfl_xor_sync(0xffffffffU, x, half);
    return x;
  }
  __device__ void sync() { __syncthreads(); }
  __device__ void together() { __syncwarp(); }
  __device__ void add_to(float* at, float x) { atomicAdd(at, x); }

  // 16 bytes a thread and turn: widths are multiples of kStep, rows begin on 16 bytes.
  template <class T>
  __device__ void copy_rows(T* to, int pitch, const T* from, std::int64_t stride, int rows, std::int64_t valid, int width) {
    constexpr int kVector = static_cast<int>(sizeof(uint4) / sizeof(T));
    const int vectors = width / kVector;
    each(rows * vectors, [&](int i) {
      const int row = i / vectors;
      const int c = i % vectors * kVector;
      *reinterpret_cast<uint4*>(to + row * pitch + c) = row < valid ? *reinterpret_cast<const uint4*>(from + row * stride + c) : uint4{0U, 0U, 0U, 0U};
    });
  }

  // A tile of 16 x 16 a warp and turn.
  template <bool ta, bool tb, class T>
  __device__ void multiply(const T* a, int lda, const T* b, int ldb, float* c, int ldc, int m, int n, int k, bool adds) {
    const int columns = n / kStep;
    for (int tile = warp(); tile < m / kStep * columns; tile += kWarps) {
      const int i = tile / columns * kStep;
      const int j = tile % columns * kStep;
      wmma::fragment<wmma::accumulator, kStep, kStep, kStep, float> sum;
      if (adds) {
        wmma::load_matrix_sync(sum, c + i * ldc + j, static_cast<unsigned>(ldc), wmma::mem_row_major);
      } else {
        wmma::fill_fragment(sum, 0.0F);
      }
      for (int x = 0; x < k; x += kStep) {
        wmma::fragment<wmma::matrix_a, kStep, kStep, kStep, T, typename Order<ta>::type> left;
        wmma::fragment<wmma::matrix_b, kStep, kStep, kStep, T, typename Order<tb>::type> right;
        wmma::load_matrix_sync(left, ta ? a + x * lda + i : a + i * lda + x, static_cast<unsigned>(lda));
        wmma::load_matrix_sync(right, tb ? b + j * ldb + x : b + x * ldb + j, static_cast<unsigned>(ldb));
        wmma::mma_sync(sum, left, right, sum);
      }
      wmma::store_matrix_sync(c + i * ldc + j, sum, static_cast<unsigned>(ldc), wmma::mem_row_major);
    }
  }

 private:
  __device__ int warp() const { return static_cast<int>(threadIdx.x) / kLanes; }
};

extern __shared__ __align__(128) unsigned char shared_memory[];

template <class T>
__global__ void __launch_bounds__(kThreads) forward_kernel(kernels::FlashShape shape, kernels::FlashInputs<T> in, T* out, float* log_sums) {
  Block block;
  kernels::flash_forward<T>(block, blockIdx.x, shape, in, out, log_sums, shared_memory);
}

template <class T>
__global__ void __launch_bounds__(kThreads) backward_kernel(kernels::FlashShape shape, kernels::FlashInputs<T> in, kernels::FlashSlopes<T> slopes) {
  Block block;
  kernels::flash_backward<T>(block, blockIdx.x, shape, in, slopes, shared_memory);
}

template <class T>
__global__ void delta_kernel(std::int64_t count, kernels::FlashShape shape, const T* out, const T* dout, float* delta) {
  const std::int64_t index = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (index < count) kernels::flash_delta(index, shape, out, dout, delta);
}

template <class T>
kernels::FlashInputs<T> inputs_of(const FlashTensors& t) {
  return {static_cast<const T*>(t.q), static_cast<const T*>(t.k), static_cast<const T*>(t.v)};
}

template <class T>
void forward(cudaStream_t stream, const kernels::FlashShape& s, const FlashTensors& t) {
  const std::size_t bytes = kernels::FlashForwardTiles<T>{s, nullptr}.bytes;
  STEPCAST_CUDA(cudaFuncSetAttribute(forward_kernel<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)));
  forward_kernel<T><<<static_cast<unsigned>(kernels::flash_forward_items<T>(s)), kThreads, bytes, stream>>>(s, inputs_of<T>(t), static_cast<T*>(t.out), t.log_sums);
  STEPCAST_CUDA(cudaGetLastError());
}

template <class T>
void backward(cudaStream_t stream, const kernels::FlashShape& s, const FlashTensors& t, const FlashGradients& g) {
  const std::int64_t rows = s.batch * s.query_length * s.query_heads;
  delta_kernel<T><<<static_cast<unsigned>((rows + kThreads - 1) / kThreads), kThreads, 0, stream>>>(rows, s, static_cast<const T*>(t.out), static_cast<const T*>(g.dout), g.delta);
  STEPCAST_CUDA(cudaGetLastError());
  STEPCAST_CUDA(cudaMemsetAsync(g.dq, 0, static_cast<std::size_t>(rows * s.head_dim) * sizeof(float), stream));
  const std::size_t bytes = kernels::FlashBackwardTiles<T>{s, nullptr}.bytes;
  STEPCAST_CUDA(cudaFuncSetAttribute(backward_kernel<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)));
  const kernels::FlashSlopes<T> slopes{static_cast<const T*>(g.dout), t.log_sums, g.delta, g.dq, static_cast<T*>(g.dk), static_cast<T*>(g.dv)};
  backward_kernel<T><<<static_cast<unsigned>(kernels::flash_backward_items<T>(s)), kThreads, bytes, stream>>>(s, inputs_of<T>(t), slopes);
  STEPCAST_CUDA(cudaGetLastError());
}

}  // namespace

bool flash_can(const kernels::FlashShape& s, plan::Dtype dtype) {
  if (dtype != plan::Dtype::kBf16 && dtype != plan::Dtype::kFp16) return false;
  if (s.head_dim % kStep != 0 || s.value_dim % kStep != 0 || s.query_heads % s.kv_heads != 0) return false;
  int device = 0;
  int most = 0;
  STEPCAST_CUDA(cudaGetDevice(&device));
  STEPCAST_CUDA(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  const std::size_t bytes = std::max(kernels::FlashForwardTiles<__half>{s, nullptr}.bytes, kernels::FlashBackwardTiles<__half>{s, nullptr}.bytes);
  return bytes <= static_cast<std::size_t>(most);
}

void flash_forward(cudaStream_t stream, plan::Dtype dtype, const kernels::FlashShape& shape, const FlashTensors& tensors) {
  if (dtype == plan::Dtype::kBf16) return forward<__nv_bfloat16>(stream, shape, tensors);
  forward<__half>(stream, shape, tensors);
}

void flash_backward(cudaStream_t stream, plan::Dtype dtype, const kernels::FlashShape& shape, const FlashTensors& tensors, const FlashGradients& gradients) {
  if (dtype == plan::Dtype::kBf16) return backward<__nv_bfloat16>(stream, shape, tensors, gradients);
  backward<__half>(stream, shape, tensors, gradients);
}

}  // namespace stepcast::executor::cuda
