// executor/cuda/host_side.hpp — the host's part of a stream: memory that copies read and write (locked, pageable, managed), a file for NVMe,
// Adam's state. Work on the host is queued on the CUDA stream as a host function.
//
// Managed  pages lie on the host before a step for copies to the device, on the device for copies from it, so that every step pays for the
//          faults that move them
#pragma once

#include <atomic>
#include <cstdio>
#include <cstdint>
#include <memory>
#include <vector>

#include <cuda_runtime.h>

#include "sim/plan/plan.hpp"

namespace stepcast::executor::cuda {

class HostSide {
 public:
  // Of the instructions that run on this stream; Adam runs on so many threads.
  HostSide(const plan::Program& program, plan::StreamId stream, int threads);
  ~HostSide();
  HostSide(const HostSide&) = delete;
  HostSide& operator=(const HostSide&) = delete;

  // Moves managed pages home, after the device has ended the step before. Throws SystemError where a file of that step failed.
  void begin_step(cudaStream_t stream);
  void throw_if_failed() const;

  // Locked memory, as long as the longest of the stream's copies and batches.
  [[nodiscard]] void* pinned() const { return pinned_; }
  [[nodiscard]] void* pageable() { return pageable_.data(); }
  // Touched by a kernel, which reads them into `to`; by the host. Throw NotSupported where the GPU does not share managed pages.
  void managed_to_device(cudaStream_t stream, void* to, std::size_t bytes);
  void managed_to_host(cudaStream_t stream, std::size_t bytes);

  // Between locked memory and a temporary file. `instruction` tells transfers in flight apart.
  void transfer(cudaStream_t stream, std::size_t instruction, std::size_t bytes, bool reads);
  void update(cudaStream_t stream);

 private:
  void require_managed() const;
  struct Transfer;
  struct Update;
  struct Touch;
  static void CUDART_CB move_file(void* transfer);
  static void CUDART_CB adam_step(void* update);
  static void CUDART_CB touch_pages(void* touch);

  void* pinned_ = nullptr;
  std::vector<std::byte> pageable_;
  void* managed_in_ = nullptr;   // lies on the host before a step
  void* managed_out_ = nullptr;  // lies on the device before a step
  std::size_t managed_bytes_ = 0;
  bool used_in_ = false;
  bool used_out_ = false;
  std::vector<std::unique_ptr<Transfer>> transfers_;  // by instruction; empty but for NVMe copies
  std::unique_ptr<Update> update_;
  std::vector<std::unique_ptr<Touch>> touches_;
  std::FILE* file_ = nullptr;
  std::atomic<bool> file_failed_{false};
};

}  // namespace stepcast::executor::cuda
