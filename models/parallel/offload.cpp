#include "models/parallel/offload.hpp"

#include <algorithm>

#include "models/parallel/optimizer.hpp"
#include "sim/base/check.hpp"

namespace stepcast::parallel {
namespace {

using plan::Category;
using plan::CopyKind;

constexpr std::int64_t kFp32Bytes = plan::element_bytes(plan::Dtype::kFp32);

std::int64_t master_bytes(const Strategy& s) { return has_master(s) ? kFp32Bytes : plan::element_bytes(s.dtype); }

}  // namespace

std::int64_t offloaded_state_bytes(const Strategy& s) {
  const std::int64_t moment = plan::element_bytes(s.state_dtype);
  const Offload& o = s.offload;
  return (o.master ? master_bytes(s) : 0) + (o.momentum ? moment : 0) + (o.variance ? moment : 0);
}

std::int64_t updated_elements(const StageBlock& block, const Strategy& s) {
  const std::int64_t routed = block.block->routed_parameters;
  return ceil_div(block.block->parameters - routed, shard_size(s, Kind::kDense)) + ceil_div(routed, shard_size(s, Kind::kExpert));
}

Bytes host_update_bytes(const Strategy& s, std::int64_t elements) {
  constexpr std::int64_t kScaling = 2 * kFp32Bytes;
  const std::int64_t states = master_bytes(s) + 2 * plan::element_bytes(s.state_dtype);
  return Bytes{elements * (kFp32Bytes + 2 * states + plan::element_bytes(s.dtype) + kScaling)};
}

void OffloadWriter::copy_in(std::string_view label, Bytes bytes) {
  if (bytes > Bytes{0}) emitter_.builder.copy(in(), label, CopyKind::kHostToDevice, bytes);
}

void OffloadWriter::copy_out(std::string_view label, Bytes bytes) {
  if (bytes > Bytes{0}) emitter_.builder.copy(out(), label, CopyKind::kDeviceToHost, bytes);
}

Bytes OffloadWriter::leaves(std::size_t block, Bytes saved) const {
  if (!strategy_.offload.residuals || model_.blocks[block].role != BlockRole::kLayer) return Bytes{0};
  return saved >= model_.boundary ? model_.boundary : Bytes{0};
}

// Compute may not write a buffer before the copy that read it is done.
void OffloadWriter::retire(std::deque<Staged>& staged, std::size_t left) {
  while (staged.size() > left) {
    emitter_.builder.wait(emitter_.compute, staged.front().done);
    emitter_.release(emitter_.compute, staged.front().buffer);
    staged.pop_front();
  }
}

void OffloadWriter::before_forward(std::size_t block, Bytes saved) {
  const Bytes bytes = leaves(block, saved);
  if (bytes == Bytes{0}) return;
  retire(outgoing_, 1);
  const auto buffer = emitter_.acquire(emitter_.compute, "residual", bytes, Category::kActivations);
  emitter_.builder.order(emitter_.compute, out());
  copy_out("residual", bytes);
  outgoing_.push_back({buffer, emitter_.builder.record(out())});
}

void OffloadWriter::after_forward() { retire(outgoing_, 1); }

void OffloadWriter::fetch(std::size_t block, Bytes bytes) {
  for (const Fetched& there : fetched_)
    if (there.block == block) return;
  if (last_used_) emitter_.builder.wait(in(), *last_used_);
  if (!outgoing_.empty()) emitter_.builder.wait(in(), outgoing_.back().done);
  const auto buffer = emitter_.acquire(in(), "residual", bytes, Category::kActivations);
  copy_in("residual", bytes);
  fetched_.push_back({block, buffer, emitter_.builder.record(in())});
}

void OffloadWriter::before_backward(std::size_t block, Bytes saved, std::optional<std::size_t> next, Bytes next_saved) {
  retire(outgoing_, 0);
  const Bytes own = leaves(block, saved);
  if (own > Bytes{0}) fetch(block, own);
  if (next && leaves(*next, next_saved) > Bytes{0}) fetch(*next, leaves(*next, next_saved));
  if (own > Bytes{0}) {
    SIM_CHECK(fetched_.front().block == block, fetched_.front().block, block);
    emitter_.builder.wait(emitter_.compute, fetched_.front().arrived);
  }
  if (!offloads_gradients(strategy_) || dense_replicas(strategy_) > 1) return;
  retire(gradients_, 1);
  const Bytes bytes{model_.blocks[block].block->parameters * plan::element_bytes(strategy_.gradient_dtype)};
  gradients_.push_back({emitter_.acquire(emitter_.compute, "gradient.block", bytes, Category::kGradients), {}});
}

void OffloadWriter::after_backward(std::size_t block, std::uint16_t micro_batch) {
  plan::ProgramBuilder& builder = emitter_.builder;
  if (!fetched_.empty() && fetched_.front().block == block) {
    emitter_.release(emitter_.compute, fetched_.front().buffer);
    fetched_.pop_front();
    last_used_ = builder.record(emitter_.compute);
  }
  if (!offloads_gradients(strategy_)) return;
  const Bytes bytes{updated_elements(model_.blocks[block], strategy_) * plan::element_bytes(strategy_.gradient_dtype)};
  if (bytes > Bytes{0}) {
    const StageScope scope{emitter_, plan::Stage::kGradientSync};
    builder.order(emitter_.compute, out());
    if (micro_batch > 0) {
      builder.order(emitter_.compute, in());
      copy_in("gradient.sum", bytes);
      builder.order(in(), out());
    }
    copy_out("gradient", bytes);
  }
  if (!gradients_.empty()) gradients_.back().done = builder.record(bytes > Bytes{0} ? out() : emitter_.compute);
}

void OffloadWriter::update() {
  retire(gradients_, 0);
  if (strategy_.offload.update_on_host) {
    update_on_host();
  } else {
    update_on_device();
  }
}

void OffloadWriter::update_on_host() {
  const double flops = update_flops(strategy_.optimizer);
  plan::ProgramBuilder& builder = emitter_.builder;
  builder.order(emitter_.compute, out());
  if (!offloads_gradients(strategy_)) {
    for (const StageBlock& block : model_.blocks)
      copy_out("gradient", Bytes{updated_elements(block, strategy_) * plan::element_bytes(strategy_.gradient_dtype)});
  }
  builder.order(out(), host());
  for (const StageBlock& block : model_.blocks) {
    const std::int64_t elements = updated_elements(block, strategy_);
    if (elements == 0) continue;
    builder.host_compute(host(), "optimizer.update", Flops::from_si(flops * static_cast<double>(elements)), host_update_bytes(strategy_, elements));
    if (strategy_.offload.parameters) continue;
    builder.order(host(), in());
    copy_in("parameters", Bytes{elements * plan::element_bytes(strategy_.dtype)});
  }
  builder.order(host(), emitter_.compute);
  builder.order(in(), emitter_.compute);
}

void OffloadWriter::update_on_device() {
  plan::ProgramBuilder& builder = emitter_.builder;
  const std::int64_t states = offloaded_state_bytes(strategy_);
  const std::int64_t gradient = offloads_gradients(strategy_) ? plan::element_bytes(strategy_.gradient_dtype) : 0;
  if (gradient > 0 && strategy_.clip_gradients) {  // the norm reads all of them before the first is applied
    builder.order(out(), in());
    for (const StageBlock& block : model_.blocks) copy_in("gradient.norm", Bytes{updated_elements(block, strategy_) * gradient});
  }
  builder.order(emitter_.compute, in());
  std::deque<plan::EventId> leaving;
  for (const StageBlock& block : model_.blocks) {
    const std::int64_t elements = updated_elements(block, strategy_);
    if (elements == 0) continue;
    if (leaving.size() > 1) {
      builder.wait(in(), leaving.front());
      leaving.pop_front();
    }
    copy_in("optimizer.states", Bytes{elements * (states + gradient)});
    builder.order(in(), emitter_.compute);
    builder.compute(emitter_.compute, "optimizer.update", elementwise_update(strategy_.optimizer, elements, block.block->matrix_count, strategy_));
    builder.order(emitter_.compute, out());
    copy_out("optimizer.states", Bytes{elements * states});
    leaving.push_back(builder.record(out()));
  }
  builder.order(out(), emitter_.compute);
}

}  // namespace stepcast::parallel
