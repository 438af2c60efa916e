// executor/cuda/streams.hpp — the plan's streams and events as CUDA's own.
#pragma once

#include <vector>

#include "executor/cuda/check.hpp"

namespace stepcast::executor::cuda {

class Streams {
 public:
  explicit Streams(std::size_t count) : streams_(count) {
    for (cudaStream_t& stream : streams_) STEPCAST_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  }
  ~Streams() {
    for (cudaStream_t stream : streams_) cudaStreamDestroy(stream);
  }
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;
  cudaStream_t operator[](std::size_t index) const { return streams_[index]; }
  [[nodiscard]] std::size_t size() const { return streams_.size(); }

 private:
  std::vector<cudaStream_t> streams_;
};

class Events {
 public:
  Events(std::size_t count, unsigned flags) : events_(count) {
    for (cudaEvent_t& event : events_) STEPCAST_CUDA(cudaEventCreateWithFlags(&event, flags));
  }
  ~Events() {
    for (cudaEvent_t event : events_) cudaEventDestroy(event);
  }
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;
  cudaEvent_t operator[](std::size_t index) const { return events_[index]; }

 private:
  std::vector<cudaEvent_t> events_;
};

}  // namespace stepcast::executor::cuda
