#include "executor/cuda/matmul.hpp"

#include <string>

#include "executor/common/payload.hpp"

namespace stepcast::executor::cuda {
namespace {

constexpr std::size_t kWorkspace = std::size_t{32} << 20U;  // what cuBLAS itself takes on Hopper

cudaDataType_t type_of(plan::Dtype dtype) {
  switch (dtype) {
    case plan::Dtype::kFp32:
    case plan::Dtype::kTf32: return CUDA_R_32F;
    case plan::Dtype::kBf16: return CUDA_R_16BF;
    case plan::Dtype::kFp16: return CUDA_R_16F;
    case plan::Dtype::kFp8: return CUDA_R_8F_E4M3;
  }
  return CUDA_R_32F;
}

class Layout {
 public:
  // Column-major, as the library sees it.
  Layout(cudaDataType_t type, std::int64_t rows, std::int64_t columns, std::int64_t batch) {
    STEPCAST_CUDA(cublasLtMatrixLayoutCreate(&layout_, type, static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(columns), rows));
    const auto count = static_cast<std::int32_t>(batch);
    const std::int64_t stride = rows * columns;
    STEPCAST_CUDA(cublasLtMatrixLayoutSetAttribute(layout_, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count));
    STEPCAST_CUDA(cublasLtMatrixLayoutSetAttribute(layout_, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride));
  }
  ~Layout() { cublasLtMatrixLayoutDestroy(layout_); }
  Layout(const Layout&) = delete;
  Layout& operator=(const Layout&) = delete;
  [[nodiscard]] cublasLtMatrixLayout_t get() const { return layout_; }

 private:
  cublasLtMatrixLayout_t layout_ = nullptr;
};

}  // namespace

// C^T = op(B)^T op(A)^T in the library's column-major eyes: B comes first.
struct Matmul::Prepared {
  cublasLtMatmulDesc_t description = nullptr;
  Layout b;
  Layout a;
  Layout c;
  cublasLtMatmulAlgo_t algorithm{};

  explicit Prepared(const Key& k)
      : b{type_of(k.dtype), k.product.b == Transpose::kYes ? k.product.k : k.product.n, k.product.b == Transpose::kYes ? k.product.n : k.product.k, k.batch},
        a{type_of(k.dtype), k.product.a == Transpose::kYes ? k.product.m : k.product.k, k.product.a == Transpose::kYes ? k.product.k : k.product.m, k.batch},
        c{type_of(result_dtype(k.dtype)), k.product.n, k.product.m, k.batch} {
    const cublasComputeType_t compute = k.dtype == plan::Dtype::kTf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    STEPCAST_CUDA(cublasLtMatmulDescCreate(&description, compute, CUDA_R_32F));
    const cublasOperation_t first = k.product.b == Transpose::kYes ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasOperation_t second = k.product.a == Transpose::kYes ? CUBLAS_OP_T : CUBLAS_OP_N;
    STEPCAST_CUDA(cublasLtMatmulDescSetAttribute(description, CUBLASLT_MATMUL_DESC_TRANSA, &first, sizeof first));
    STEPCAST_CUDA(cublasLtMatmulDescSetAttribute(description, CUBLASLT_MATMUL_DESC_TRANSB, &second, sizeof second));
  }
  ~Prepared() { cublasLtMatmulDescDestroy(description); }
  Prepared(const Prepared&) = delete;
  Prepared& operator=(const Prepared&) = delete;
};

plan::Dtype result_dtype(plan::Dtype dtype) { return dtype == plan::Dtype::kFp8 ? plan::Dtype::kBf16 : dtype; }

Matmul::Matmul(std::size_t streams) : workspaces_(streams, nullptr) {
  STEPCAST_CUDA(cublasLtCreate(&handle_));
  for (void*& workspace : workspaces_) STEPCAST_CUDA(cudaMalloc(&workspace, kWorkspace));
  STEPCAST_CUDA(cudaMalloc(&scale_, sizeof(float)));
  const float one = 1.0F;
  STEPCAST_CUDA(cudaMemcpy(scale_, &one, sizeof one, cudaMemcpyHostToDevice));
}

Matmul::~Matmul() {
  prepared_.clear();
  for (void* workspace : workspaces_) cudaFree(workspace);
  cudaFree(scale_);
  if (handle_ != nullptr) cublasLtDestroy(handle_);
}

Matmul::Prepared& Matmul::prepare(const Key& key) {
  std::unique_ptr<Prepared>& slot = prepared_[key];
  if (slot) return *slot;
  auto made = std::make_unique<Prepared>(key);
  if (key.dtype == plan::Dtype::kFp8) {
    for (const cublasLtMatmulDescAttributes_t attribute : {CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER}) {
      STEPCAST_CUDA(cublasLtMatmulDescSetAttribute(made->description, attribute, &scale_, sizeof scale_));
    }
  }
  cublasLtMatmulPreference_t preference = nullptr;
  STEPCAST_CUDA(cublasLtMatmulPreferenceCreate(&preference));
  const std::size_t most = kWorkspace;
  STEPCAST_CUDA(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most, sizeof most));
  cublasLtMatmulHeuristicResult_t best{};
  int found = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(handle_, made->description, made->b.get(), made->a.get(), made->c.get(), made->c.get(), preference, 1, &best, &found);
  cublasLtMatmulPreferenceDestroy(preference);
  if (status != CUBLAS_STATUS_SUCCESS || found == 0) {
    const Product& p = key.product;
    throw NotSupported("cuBLASLt has no algorithm for a product of " + std::to_string(p.m) + " x " + std::to_string(p.n) + " x " + std::to_string(p.k) + " in " +
                      plan::name_of(key.dtype) + " on this GPU" + (key.dtype == plan::Dtype::kFp8 ? " (fp8 wants sides in multiples of 16, and Ada or later)" : ""));
  }
  made->algorithm = best.algo;
  slot = std::move(made);
  return *slot;
}

void Matmul::multiply(std::size_t stream_index, cudaStream_t stream, plan::Dtype dtype, std::int64_t batch, const Product& product, const void* a, const void* b, void* c) {
  Prepared& p = prepare({dtype, batch, product});
  const float alpha = 1.0F;
  const float beta = product.accumulates ? 1.0F : 0.0F;
  STEPCAST_CUDA(cublasLtMatmul(handle_, p.description, &alpha, b, p.b.get(), a, p.a.get(), &beta, c, p.c.get(), c, p.c.get(), &p.algorithm, workspaces_[stream_index], kWorkspace, stream));
}

}  // namespace stepcast::executor::cuda
