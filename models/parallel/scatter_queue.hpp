// models/parallel/scatter_queue.hpp — full gradients that live only until they are reduce-scattered.
// At most two at a time are on their way or being filled: before a third is allocated, compute waits for the oldest reduction, as
// PyTorch FSDP and DeepSpeed's two bucket buffers do. A table that both ends share is held beside them, from the head's backward pass on.
#pragma once

#include <deque>
#include <string>

#include "models/parallel/data_parallel.hpp"

namespace stepcast::parallel {

// Weights of a unit's dense products, and its other parameters. With Strategy::gather_by_matrix its gradients are reduced in buckets that are filled in
// the order of the backward pass and sent off before they would overflow: a matrix larger than a bucket goes by itself, and so does what lies between
// two, or each vector where those are larger, too.
// Source   DeepSpeed v0.6 runtime/zero/stage3.py (reduce_independent_p_g_buckets_and_remove_grads)
// Ignores  that matrices differ in size; buckets that two units share
struct Matrices {
  std::int64_t count = 0;
  std::int64_t elements = 0;
  std::int64_t vectors = 0;
};

class ScatterQueue {
 public:
  // `stream`: where the reductions run.
  ScatterQueue(const DataParallelContext& context, plan::StreamId stream, std::string label)
      : context_{context}, stream_{stream}, label_{std::move(label)} {}

  plan::BufferId open(const Elements& elements);
  // Reduces a gradient that compute has finished.
  void close(plan::BufferId buffer, const Elements& elements, const Matrices& matrices = {});
  // Compute waits for all reductions; all buffers are freed.
  void drain();

 private:
  struct Pending {
    plan::BufferId buffer;
    plan::EventId done;
  };
  void retire_oldest();
  void reduce_dense(std::int64_t elements, const Matrices& matrices);

  DataParallelContext context_;
  plan::StreamId stream_;
  std::string label_;
  std::deque<Pending> pending_;
};

}  // namespace stepcast::parallel
