// models/parallel/scatter_queue.hpp — full gradients that live only until they are reduce-scattered.
// At most two at a time are on their way or being filled: before a third is allocated, compute waits for the oldest reduction, as
// PyTorch FSDP and DeepSpeed's two bucket buffers do. A table that both ends share is held beside them, from the head's backward pass on.
#pragma once

#include <deque>
#include <string>

#include "models/parallel/data_parallel.hpp"

namespace stepcast::parallel {

class ScatterQueue {
 public:
  // `stream`: where the reductions run.
  ScatterQueue(const DataParallelContext& context, plan::StreamId stream, std::string label)
      : context_{context}, stream_{stream}, label_{std::move(label)} {}

  plan::BufferId open(const Elements& elements);
  // Reduces a gradient that compute has finished.
  void close(plan::BufferId buffer, const Elements& elements);
  // Compute waits for all reductions; all buffers are freed.
  void drain();

 private:
  struct Pending {
    plan::BufferId buffer;
    plan::EventId done;
  };
  void retire_oldest();

  DataParallelContext context_;
  plan::StreamId stream_;
  std::string label_;
  std::deque<Pending> pending_;
};

}  // namespace stepcast::parallel
