// executor/cuda/check.hpp — every call of CUDA, cuBLAS and NCCL goes through one of these: what failed, where, and the library's own words.
#pragma once

#include <string>

#include <cublasLt.h>
#include <cuda_runtime.h>
#include <nccl.h>

#include "sim/base/file.hpp"

namespace stepcast::executor::cuda {

[[noreturn]] inline void failed(const char* file, int line, const char* call, const std::string& reason) {
  throw SystemError(std::string{file} + ':' + std::to_string(line) + ": " + call + ": " + reason);
}

inline void check(cudaError_t status, const char* file, int line, const char* call) {
  if (status != cudaSuccess) failed(file, line, call, std::string{cudaGetErrorName(status)} + ", " + cudaGetErrorString(status));
}
inline void check(cublasStatus_t status, const char* file, int line, const char* call) {
  if (status != CUBLAS_STATUS_SUCCESS) failed(file, line, call, cublasLtGetStatusString(status));
}
inline void check(ncclResult_t status, const char* file, int line, const char* call) {
  if (status != ncclSuccess && status != ncclInProgress) failed(file, line, call, ncclGetErrorString(status));
}

}  // namespace stepcast::executor::cuda

#define STEPCAST_CUDA(call) ::stepcast::executor::cuda::check((call), __FILE__, __LINE__, #call)
