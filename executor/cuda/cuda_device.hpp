// executor/cuda/cuda_device.hpp — a worker on a GPU: the plan's streams are CUDA streams, Record and Wait are CUDA events, Alloc and Free come
// from the stream-ordered pool exactly where the plan has them, collectives and messages are NCCL's. Every instruction that takes time lies
// between two events; begin_step's event is the clock's origin.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "executor/common/device.hpp"
#include "executor/common/payload.hpp"
#include "executor/cuda/communicators.hpp"
#include "executor/cuda/streams.hpp"

namespace stepcast::executor::cuda {

class CudaDevice : public Device {
 public:
  // Everything named here outlives the device. Requires: a plan that plan::check() accepts.
  CudaDevice(const plan::Plan& plan, RankId rank, const Streams& streams, Communicators& communicators, Payload& payload, Bytes memory_limit);
  ~CudaDevice() override;

  void begin_step() override;
  void hold() override;
  void issue(std::size_t index) override;
  void finish() override;
  [[nodiscard]] std::span<const Interval> intervals() const override { return intervals_; }

  [[nodiscard]] Bytes peak_memory() const { return peak_; }
  // Which instructions have not ended, a stream each. Thread-safe, as far as CUDA is.
  [[nodiscard]] std::vector<std::string> standing() const;

 private:
  struct Timing {
    std::size_t begin = 0;  // in marks_
    std::size_t end = 0;
  };
  void run(std::size_t index, cudaStream_t stream);
  void take(plan::BufferId buffer, cudaStream_t stream);
  void give(plan::BufferId buffer, cudaStream_t stream);

  const plan::Plan& plan_;
  const plan::Program& program_;
  const Streams& streams_;
  Communicators& communicators_;
  Payload& payload_;
  Bytes limit_;
  Bytes used_{};
  Bytes peak_{};
  std::vector<void*> blocks_;                    // by buffer
  Events events_;                                // the plan's
  std::vector<std::optional<Timing>> timings_;   // by instruction
  std::vector<std::size_t> issued_;              // since begin_step(), those that take time
  Events marks_;
  Events origin_;
  int* released_ = nullptr;                      // read by kernels that hold streams
  std::int64_t origin_ns_ = 0;
  std::vector<Interval> intervals_;
};

}  // namespace stepcast::executor::cuda
