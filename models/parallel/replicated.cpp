#include "models/parallel/replicated.hpp"

#include <algorithm>

#include "models/parallel/optimizer.hpp"

namespace stepcast::parallel {

using plan::CollectiveKind;
using plan::Purpose;
using plan::StreamKind;

namespace {

Elements elements_of(const Bucket& bucket) {
  return bucket.kind == Kind::kDense ? Elements{bucket.elements, 0} : Elements{0, bucket.elements};
}

}  // namespace

Replicated::Replicated(const DataParallelContext& context)
    : context_{context}, stream_{context.emitter.compute}, gather_stream_{context.emitter.compute} {
  const Strategy& s = context.strategy;
  plan::ProgramBuilder& builder = context.emitter.builder;
  if (s.overlap_grad_reduce) stream_ = builder.stream(StreamKind::kCommunication, "dp");
  if (sharded_states() && s.overlap_param_gather) gather_stream_ = builder.stream(StreamKind::kCommunication, "dp");

  const std::int64_t wanted = std::max<std::int64_t>(1, s.bucket.count() / plan::element_bytes(s.gradient_dtype));
  buckets_ = make_buckets(gradient_pieces(context.model), wanted);
  // Nothing overlaps and nothing is freed in between: one bucket.
  if (!s.overlap_grad_reduce && !syncs_every(s)) {
    buckets_ = make_buckets(gradient_pieces(context.model), context.model.parameters);
  }
  std::erase_if(buckets_, [&](const Bucket& bucket) { return !is_replicated(context, bucket.kind); });
  open_.resize(buckets_.size());
  gathered_.resize(buckets_.size());
  last_action_.resize(context.model.chunks.size());
  for (std::size_t i = 0; i < context.actions.size(); ++i) {
    for (const Pass& pass : Passes{context.actions[i]}) {
      if (gives_weight_gradient(pass)) last_action_[pass.chunk] = i;
    }
  }
  if (sharded_gradients()) scatters_.emplace(context, stream_, "gradient.bucket");
}

// In another format: those of two buckets, one that is written and one that is on its way.
void Replicated::hold_copies() {
  if (!casts() || scatters_) return;
  std::int64_t largest = 0;
  for (const Bucket& bucket : buckets_) largest = std::max(largest, padded_to_shards(context_.strategy, bucket.elements, bucket.kind));
  const std::int64_t held = std::min<std::int64_t>(2, static_cast<std::int64_t>(buckets_.size())) * largest;
  context_.emitter.acquire(context_.emitter.compute, "gradient.copies_in_transit", reduced_bytes(context_.strategy, held), plan::Category::kCommunication);
}

void Replicated::reduce(const Bucket& bucket) {
  cast_for_reduction(context_, bucket.elements);
  if (stream_ != context_.emitter.compute) context_.emitter.builder.order(context_.emitter.compute, stream_);
  reduce_gradient(context_, stream_, "gradient.bucket", bucket.elements, bucket.kind);
}

void Replicated::begin_step() {
  hold_copies();
  if (!sharded_states() || !context_.strategy.overlap_param_gather) return;
  const StageScope scope{context_.emitter, plan::Stage::kForward};
  for (std::size_t i = buckets_.size(); i-- > 0;) {
    gather_parameters(buckets_[i]);
    gathered_[i] = context_.emitter.builder.record(gather_stream_);
  }
}

void Replicated::begin_action(std::size_t action) {
  reducing_ = false;
  for (const Pass& pass : Passes{context_.actions[action]}) {
    if (!gives_weight_gradient(pass)) continue;
    reducing_ = syncs_every(context_.strategy) || (context_.strategy.overlap_grad_reduce && last_action_[pass.chunk] == action);
    next_ready_ = 0;
    while (next_ready_ < buckets_.size() && buckets_[next_ready_].chunk != pass.chunk) ++next_ready_;
  }
}

// Gathers run in forward order, so the latest gather that a block needs is that of the lowest bucket
// with any of its parameters.
void Replicated::before_forward(std::size_t block) {
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    if (buckets_[i].ready.block > block || buckets_[i].opened.block < block) continue;
    if (!gathered_[i]) return;
    context_.emitter.builder.wait(context_.emitter.compute, *gathered_[i]);
    // Later gathers are done too; a block is waited for once.
    for (std::size_t j = i; j < buckets_.size(); ++j) gathered_[j].reset();
    return;
  }
}

void Replicated::before_backward_step(std::size_t block, std::size_t step) {
  if (!reducing_ || !scatters_) return;
  for (std::size_t i = next_ready_; i < buckets_.size(); ++i)
    if (buckets_[i].written == Moment{block, step}) open_[i] = scatters_->open(elements_of(buckets_[i]));
}

void Replicated::after_backward_step(std::size_t block, std::size_t step) {
  if (!reducing_) return;
  while (next_ready_ < buckets_.size() && buckets_[next_ready_].ready == Moment{block, step}) {
    const Bucket& bucket = buckets_[next_ready_];
    if (scatters_) {
      scatters_->close(*open_[next_ready_], elements_of(bucket));
    } else {
      reduce(bucket);
    }
    ++next_ready_;
  }
}

void Replicated::finish_gradients() {
  Emitter& e = context_.emitter;
  if (scatters_) {
    scatters_->drain();
  } else if (!context_.strategy.overlap_grad_reduce && !syncs_every(context_.strategy)) {
    for (const Bucket& bucket : buckets_) {
      const Bytes size = std::min(context_.strategy.bucket, gradient_bytes(context_.strategy, bucket.elements));
      std::optional<plan::BufferId> copy;
      if (context_.strategy.copies_into_buckets) copy = e.acquire(e.compute, "gradient.bucket", size, plan::Category::kCommunication);
      reduce(bucket);
      e.release(e.compute, copy);
    }
  } else if (stream_ != e.compute) {
    const StageScope scope{e, plan::Stage::kGradientSync};
    e.builder.order(stream_, e.compute);
  }
  if (!casts() || scatters_ || buckets_.empty()) return;
  // What has arrived, back in the format that it is kept in.
  const Strategy& s = context_.strategy;
  std::int64_t elements = 0;
  for (const Bucket& bucket : buckets_) elements += ceil_div(bucket.elements, shard_size(s, bucket.kind));
  const StageScope scope{e, plan::Stage::kGradientSync};
  plan::Kernel kernel = streaming_kernel(0, reduced_bytes(s, elements).count(), gradient_bytes(s, elements).count(), 1);
  kernel.op = plan::OpClass::kElementwise;
  e.builder.compute(e.compute, "gradient.cast_back", kernel);
}

void Replicated::end_step() {
  if (!sharded_states() || context_.strategy.overlap_param_gather) return;
  for (std::size_t i = buckets_.size(); i-- > 0;) gather_parameters(buckets_[i]);
}

void Replicated::gather_parameters(const Bucket& bucket) {
  const Strategy& s = context_.strategy;
  context_.emitter.builder.collective(
      gather_stream_, "parameter.bucket",
      {CollectiveKind::kAllGather, *context_.groups.of(bucket.kind).shard,
       parameter_bytes(s, padded_to_shards(s, bucket.elements, bucket.kind)) - saved_by_fp8(s, bucket.in_fp8), s.dtype, Purpose::kData});
}

}  // namespace stepcast::parallel
