// calibration/kernel_names.hpp — what a GPU did, told by the name that a profiler shows: the one table that sorts kernels of
// libraries, frameworks and compilers into kinds.
//
// Rule     The name in lower case; the first row of the table (kernel_names.cpp) one of whose fragments occurs in it. What no
//          row knows is `other`.
// Source   names in traces of PyTorch 1.12 to 2.7 on V100 to B200 and MI250/MI300X: cuBLAS, cuDNN, CUTLASS, FlashAttention, Triton,
//          Transformer Engine, Apex, FBGEMM, NCCL 2.8 to 2.27, RCCL, Tensile
// Ignores  what a fused kernel does besides what its name begins with; which pass it belongs to
// Tests    unit/kernel_names_test
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stepcast::calibration {

// Up to kOptimizer as plan::OpClass.
enum class GpuWork : std::uint8_t {
  kGemm, kAttention, kElementwise, kNorm, kSoftmax, kEmbedding, kLoss, kOptimizer,
  kConvolution, kReduction, kCollective, kCopy, kMemset, kGraph, kOther,
  kStep,        // a step of training, as the host marked it
  kAnnotation,  // a range that somebody named
};
inline constexpr int kGpuWorkCount = 17;

const char* name_of(GpuWork work);
// The kind whose name it is.
std::optional<GpuWork> gpu_work_of(std::string_view name);

GpuWork classify_kernel(std::string_view name);

// "at::native::vectorized_elementwise_kernel<4, ...>": without return type and arguments, at most 160 characters.
std::string short_kernel_name(std::string_view name);

// What a kernel of NCCL or RCCL tells: "ncclDevKernel_AllReduce_Sum_f32_RING_LL(...)".
struct CollectiveName {
  std::string collective;  // all_reduce, all_gather, ...; send_recv also is every all-to-all
  std::string algorithm;   // ring, tree, nvls, ...; may be empty
  std::string protocol;    // ll, ll128, simple; may be empty
};
std::optional<CollectiveName> read_collective_kernel(std::string_view name);

// As PyTorch calls collectives ("_allgather_base", "allreduce"): all_gather, all_reduce, ...; unknown ones stay as they are.
std::string collective_of(std::string_view word);

// Bytes of an element by PyTorch's name ("Float", "BFloat16").
std::optional<std::int64_t> torch_element_bytes(std::string_view dtype);

// The range marks a step: "ProfilerStep#12", "iteration 12", "step_12".
bool is_step_name(std::string_view name);

}  // namespace stepcast::calibration
