#include "models/parallel/scatter_queue.hpp"

namespace stepcast::parallel {

plan::BufferId ScatterQueue::open(std::int64_t elements) {
  while (pending_.size() > 1) retire_oldest();
  const Bytes size = gradient_bytes(context_.strategy, padded_to_shards(context_.strategy, elements));
  return *context_.emitter.acquire(context_.emitter.compute, label_, size, plan::Category::kCommunication);
}

void ScatterQueue::close(plan::BufferId buffer, std::int64_t elements) {
  Emitter& e = context_.emitter;
  if (stream_ == e.compute) {
    reduce_gradient(context_, stream_, label_, elements);
    e.release(e.compute, buffer);
    return;
  }
  e.builder.order(e.compute, stream_);
  reduce_gradient(context_, stream_, label_, elements);
  pending_.push_back({buffer, e.builder.record(stream_)});
}

void ScatterQueue::drain() {
  while (!pending_.empty()) retire_oldest();
}

void ScatterQueue::retire_oldest() {
  Emitter& e = context_.emitter;
  const Pending oldest = pending_.front();
  pending_.pop_front();
  e.builder.wait(e.compute, oldest.done);
  e.release(e.compute, oldest.buffer);
}

}  // namespace stepcast::parallel
