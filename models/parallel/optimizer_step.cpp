#include "models/parallel/optimizer_step.hpp"

#include "models/parallel/optimizer.hpp"

namespace stepcast::parallel {
namespace {

constexpr std::int64_t kFp32Bytes = plan::element_bytes(plan::Dtype::kFp32);

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
  if (model.parameters == 0) return;
  const StageScope scope{emitter, plan::Stage::kOptimizer};
  emitter.builder.compute(emitter.compute, "optimizer.zero_gradients", zero_kernel(model, strategy));
}

void update_parameters(const StageModel& model, const Strategy& strategy, const Groups& groups, Emitter& emitter) {
  const StageScope scope{emitter, plan::Stage::kOptimizer};
  if (strategy.clip_gradients) {
    if (model.parameters > 0) emitter.builder.compute(emitter.compute, "optimizer.norm", norm_kernel(model, strategy));
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
  for (const UpdateKernel& update : update_kernels(model, strategy)) emitter.builder.compute(emitter.compute, update.label, update.kernel);
}

}  // namespace stepcast::parallel
