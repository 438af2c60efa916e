// executor/cuda/cuda_payload.hpp — the work of a plan on random numbers, on a GPU: matrix products by cuBLASLt in their format, attention by
// cuDNN where it is and takes the shape, else by blocks on tensor cores (16 bits) or row by row (fp32, odd widths), Adam, streams of bytes, copies between locked, pageable or managed host memory and
// the device, host Adam, NVMe.
//
// Data     every stream has a block of random inputs and one of results, larger than the caches; operators take the next ones in turn.
// Ignores  which buffers of the plan an operator would use; rows that an embedding takes
#pragma once

#include <memory>
#include <vector>

#include "executor/common/payload.hpp"
#include "executor/cuda/cudnn/attention_library.hpp"
#include "executor/cuda/flash.hpp"
#include "executor/cuda/host_side.hpp"
#include "executor/cuda/matmul.hpp"
#include "executor/cuda/streams.hpp"
#include "sim/plan/plan.hpp"

namespace stepcast::executor::cuda {

class CudaPayload : public Payload {
 public:
  CudaPayload(const plan::Program& program, const Streams& streams, Matmul& matmul, cudnn::AttentionLibrary& library, std::uint64_t seed, int threads = 1);
  ~CudaPayload() override;

  void begin_step() override;
  void compute(std::size_t i) override;
  std::span<std::byte> collective(std::size_t i) override;
  std::span<std::byte> landing(std::size_t i) override;
  void collected(std::size_t) override {}
  [[nodiscard]] Reduction reduction(std::size_t) const override { return Reduction::kSum; }
  std::span<const std::byte> outgoing(std::size_t i) override { return collective(i); }
  std::span<std::byte> incoming(std::size_t i) override { return landing(i); }
  void received(std::size_t) override {}
  void copy(std::size_t i) override;
  void host_compute(std::size_t i) override;
  void load_batch(std::size_t i) override;
  // Nothing, or the error of a file that failed.
  [[nodiscard]] std::vector<std::pair<std::string, double>> values() const override;
  // Who computes the program's attention, and why not cuDNN where it does not.
  [[nodiscard]] std::string attention_account() const;

 private:
  struct Lane;  // the data of a stream
  Lane& lane(std::size_t i) { return *lanes_[program_.instructions[i].stream.index()]; }
  void gemm(Lane& lane, std::size_t stream, const plan::Kernel& kernel);
  void attention(Lane& lane, cudaStream_t stream, const plan::Kernel& kernel);
  void attention_by_library(Lane& lane, cudaStream_t stream, const kernels::FlashShape& shape, const cudnn::AttentionPlan& plan, bool forward);
  static void* host_memory(Lane& lane, plan::Memory kind);
  static void attention_by_blocks(Lane& lane, cudaStream_t stream, const kernels::FlashShape& shape, plan::Dtype dtype, bool forward);
  static void attention_by_rows(Lane& lane, cudaStream_t stream, const plan::Kernel& kernel);

  const plan::Program& program_;
  const Streams& streams_;
  Matmul& matmul_;
  cudnn::AttentionLibrary& library_;
  std::vector<std::unique_ptr<Lane>> lanes_;
};

}  // namespace stepcast::executor::cuda
