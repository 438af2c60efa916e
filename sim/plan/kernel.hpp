// sim/plan/kernel.hpp — what one device kernel computes: the vocabulary that workload, plan, GPU
// model and executor share. A Kernel holds shapes and counts only, never a time.
//
// FLOPs are the operations *executed* (an FMA is 2; causal flash attention runs half the square).
// Bytes are the least a kernel must move to and from device memory, each operand once.
#pragma once

#include <cstdint>
#include <optional>

#include "sim/base/units.hpp"

namespace stepcast::plan {

enum class Dtype : std::uint8_t { kFp32, kTf32, kBf16, kFp16, kFp8 };
inline constexpr int kDtypeCount = 5;

// Storage of one element; TF32 is stored as fp32.
constexpr std::int64_t element_bytes(Dtype dtype) {
  switch (dtype) {
    case Dtype::kFp32:
    case Dtype::kTf32: return 4;
    case Dtype::kBf16:
    case Dtype::kFp16: return 2;
    case Dtype::kFp8: return 1;
  }
  return 0;
}

enum class OpClass : std::uint8_t {
  kGemm,         // dense matrix product, `gemm` set
  kAttention,    // fused (flash) attention, `attention` set
  kElementwise,  // activation, residual, dropout, rotary, cast
  kNorm,         // LayerNorm, RMSNorm
  kSoftmax,      // the unfused attention's masked softmax
  kEmbedding,    // gather, scatter-add
  kLoss,         // softmax cross-entropy over the vocabulary
  kOptimizer,    // parameter update
};
inline constexpr int kOpClassCount = 8;

enum class Pass : std::uint8_t { kForward, kInputGrad, kWeightGrad, kBackward };  // kBackward: both at once

// C[m,n] = A[m,k] B[k,n], `batch` times.
struct GemmShape {
  std::int64_t batch = 1;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  friend auto operator<=>(const GemmShape&, const GemmShape&) = default;
};

struct AttentionShape {
  std::int64_t batch = 1;
  std::int64_t query_heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t query_length = 0;
  std::int64_t kv_length = 0;
  std::int64_t head_dim = 0;
  std::int64_t value_dim = 0;
  bool causal = true;
  std::optional<std::int64_t> window;  // keys a query sees at most (sliding window)
  friend auto operator<=>(const AttentionShape&, const AttentionShape&) = default;
};

struct Kernel {
  OpClass op = OpClass::kElementwise;
  Pass pass = Pass::kForward;
  Dtype dtype = Dtype::kBf16;  // of the inputs of the arithmetic
  std::optional<GemmShape> gemm;
  std::optional<AttentionShape> attention;
  Flops flops;         // executed
  Bytes read;          // device memory, each operand once
  Bytes written;
  int launches = 1;    // device kernels behind this operator (an unfused operator has several)
  friend auto operator<=>(const Kernel&, const Kernel&) = default;
};

const char* name_of(Dtype dtype);
const char* name_of(OpClass op);
const char* name_of(Pass pass);

}  // namespace stepcast::plan
