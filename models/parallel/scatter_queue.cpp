#include "models/parallel/scatter_queue.hpp"

#include <algorithm>

namespace stepcast::parallel {

plan::BufferId ScatterQueue::open(const Elements& elements) {
  while (pending_.size() > 1) retire_oldest();
  const Strategy& s = context_.strategy;
  const std::int64_t padded = padded_to_shards(s, elements.dense, Kind::kDense) + padded_to_shards(s, elements.routed, Kind::kExpert);
  const Bytes copy = reduce_dtype(s) == s.gradient_dtype ? Bytes{0} : reduced_bytes(s, padded);
  const Bytes size = gradient_bytes(s, padded) + copy;
  return *context_.emitter.acquire(context_.emitter.compute, label_, size, plan::Category::kCommunication);
}

// Matrices, and vectors between them, of a size each.
void ScatterQueue::reduce_dense(std::int64_t elements, const Matrices& matrices) {
  const Strategy& s = context_.strategy;
  const auto reduce_parts = [&](std::int64_t all, std::int64_t parts) {
    for (std::int64_t i = 0; i < parts; ++i) reduce_gradient(context_, stream_, label_, all / parts + (i < all % parts ? 1 : 0), Kind::kDense);
  };
  if (!s.gather_by_matrix || matrices.count == 0) return reduce_parts(elements, 1);
  const std::int64_t tensors = matrices.count + std::max<std::int64_t>(0, matrices.vectors);
  if (reduced_bytes(s, matrices.elements / matrices.count) < s.bucket)
    return reduce_parts(elements, std::min(tensors, ceil_div(reduced_bytes(s, elements).count(), s.bucket.count())));
  reduce_parts(matrices.elements, matrices.count);
  const std::int64_t rest = elements - matrices.elements;
  const bool alone = matrices.vectors > 0 && reduced_bytes(s, rest / matrices.vectors) >= s.bucket;
  reduce_parts(rest, alone ? matrices.vectors : matrices.count);
}

void ScatterQueue::close(plan::BufferId buffer, const Elements& elements, const Matrices& matrices) {
  Emitter& e = context_.emitter;
  const auto reduce = [&] {
    reduce_dense(elements.dense, matrices);
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
