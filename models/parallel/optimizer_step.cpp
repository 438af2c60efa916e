#include "models/parallel/optimizer_step.hpp"

#include "models/parallel/optimizer.hpp"

namespace stepcast::parallel {
namespace {

constexpr std::int64_t kFp32Bytes = plan::element_bytes(plan::Dtype::kFp32);

struct FlatGradients {
  std::optional<plan::BufferId> fp32;  // until the update is done
};

// DeepSpeed's ZeRO flattens the shard's gradients and casts the flat copy; without ZeRO each gradient is cast and the
// casts are flattened.
FlatGradients flatten_gradients(const StageModel& model, const Strategy& strategy, Emitter& emitter) {
  if (!strategy.casts_gradients) return {};
  const std::int64_t elements = persistent_state(model, strategy).updated_elements;
  const std::int64_t first = strategy.zero > 0 ? plan::element_bytes(strategy.gradient_dtype) : kFp32Bytes;
  const auto parts = emitter.acquire(emitter.compute, "optimizer.gradients", Bytes{elements * first}, plan::Category::kGradients);
  FlatGradients flat{emitter.acquire(emitter.compute, "optimizer.gradients.fp32", Bytes{elements * kFp32Bytes}, plan::Category::kGradients)};
  emitter.release(emitter.compute, parts);
  return flat;
}

}  // namespace

plan::Kernel zero_kernel(const StageModel& model, const Strategy& strategy) {
  plan::Kernel kernel = streaming_kernel(0, 0, persistent_state(model, strategy).gradients.count(), 1);
  kernel.op = plan::OpClass::kElementwise;
  kernel.dtype = strategy.gradient_dtype;
  return kernel;
}

plan::Kernel norm_kernel(const StageModel& model, const Strategy& strategy) {
  const std::int64_t n = persistent_state(model, strategy).updated_elements;
  plan::Kernel kernel = streaming_kernel(2 * static_cast<double>(n), n * plan::element_bytes(strategy.gradient_dtype),
                                         0, fused_launches(n, updated_by_worker(model, strategy).tensors));
  kernel.op = plan::OpClass::kElementwise;
  return kernel;
}

void zero_gradients(const StageModel& model, const Strategy& strategy, Emitter& emitter) {
  if (model.parameters == 0 || offloads_gradients(strategy)) return;
  const StageScope scope{emitter, plan::Stage::kOptimizer};
  emitter.builder.compute(emitter.compute, "optimizer.zero_gradients", zero_kernel(model, strategy));
}

void update_parameters(const StageModel& model, const Strategy& strategy, const Groups& groups, Emitter& emitter, OffloadWriter& offload) {
  const StageScope scope{emitter, plan::Stage::kOptimizer};
  if (strategy.clip_gradients) {
    if (model.parameters > 0 && !offloads_gradients(strategy)) emitter.builder.compute(emitter.compute, "optimizer.norm", norm_kernel(model, strategy));
    if (groups.norm) {
      const plan::Purpose purpose = shard_size(strategy) > 1 || strategy.ep > 1 ? plan::Purpose::kData
                                    : strategy.pp > 1        ? plan::Purpose::kPipeline
                                                             : plan::Purpose::kTensor;
      emitter.builder.collective(
          emitter.compute, "optimizer.norm",
          {plan::CollectiveKind::kAllReduce, *groups.norm, Bytes{kFp32Bytes}, plan::Dtype::kFp32, purpose});
    }
  }
  if (model.parameters == 0) return;
  if (strategy.offload.states() || offloads_gradients(strategy)) return offload.update();
  const FlatGradients flat = flatten_gradients(model, strategy, emitter);
  for (const UpdateKernel& update : update_kernels(model, strategy)) emitter.builder.compute(emitter.compute, update.label, update.kernel);
  emitter.release(emitter.compute, flat.fp32);
}

}  // namespace stepcast::parallel
