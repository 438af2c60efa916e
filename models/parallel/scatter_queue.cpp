#include "models/parallel/scatter_queue.hpp"

namespace stepcast::parallel {

plan::BufferId ScatterQueue::open(const Elements& elements) {
  while (pending_.size() > 1) retire_oldest();
  const Strategy& s = context_.strategy;
  const std::int64_t padded = padded_to_shards(s, elements.dense, Kind::kDense) + padded_to_shards(s, elements.routed, Kind::kExpert);
  const Bytes copy = reduce_dtype(s) == s.gradient_dtype ? Bytes{0} : reduced_bytes(s, padded);
  const Bytes size = gradient_bytes(s, padded) + copy;
  return *context_.emitter.acquire(context_.emitter.compute, label_, size, plan::Category::kCommunication);
}

void ScatterQueue::close(plan::BufferId buffer, const Elements& elements) {
  Emitter& e = context_.emitter;
  const auto reduce = [&] {
    reduce_gradient(context_, stream_, label_, elements.dense, Kind::kDense);
    reduce_gradient(context_, stream_, label_, elements.routed, Kind::kExpert);
  };
  cast_for_reduction(context_, elements.dense + elements.routed);
  if (stream_ == e.compute) {
    reduce();
    e.release(e.compute, buffer);
    return;
  }
  e.builder.order(e.compute, stream_);
  reduce();
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
