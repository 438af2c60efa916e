#include "models/parallel/optimizer_step.hpp"

#include <algorithm>

namespace stepcast::parallel {
namespace {

constexpr std::int64_t kTensorsPerLaunch = 36;
constexpr std::int64_t kElementsPerLaunch = 320 * 65'536;
constexpr std::int64_t kFp32Bytes = plan::element_bytes(plan::Dtype::kFp32);

// FLOPs an element. Adam: moments 3 + 4, bias corrections 2, root, sum, quotient 3, step 2; AdamW
// decays the weight besides; SGD: momentum 2, step 2.
double update_flops(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::kAdam: return 14;
    case Optimizer::kAdamW: return 16;
    case Optimizer::kSgd: return 4;
  }
  return 0;
}

int launches(std::int64_t elements, std::int64_t tensors) {
  return static_cast<int>(std::max<std::int64_t>({1, ceil_div(tensors, kTensorsPerLaunch),
                                                  ceil_div(elements, kElementsPerLaunch)}));
}

std::int64_t updated_tensors(const StageModel& model, const Strategy& strategy) {
  std::int64_t tensors = 0;
  for (const Kind kind : {Kind::kDense, Kind::kExpert}) tensors += ceil_div(model.tensors_of(kind), shard_size(strategy, kind));
  return tensors;
}

plan::Kernel streaming_kernel(double flops, std::int64_t read, std::int64_t written, int launch_count) {
  plan::Kernel kernel;
  kernel.op = plan::OpClass::kOptimizer;
  kernel.pass = plan::Pass::kForward;
  kernel.dtype = plan::Dtype::kFp32;
  kernel.flops = Flops::from_si(flops);
  kernel.read = Bytes{read};
  kernel.written = Bytes{written};
  kernel.launches = launch_count;
  return kernel;
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
                                         0, launches(n, updated_tensors(model, strategy)));
  kernel.op = plan::OpClass::kElementwise;
  return kernel;
}

plan::Kernel update_kernel(const StageModel& model, const Strategy& strategy) {
  const std::int64_t n = persistent_state(model, strategy).updated_elements;
  const std::int64_t parameter = plan::element_bytes(strategy.dtype);
  const std::int64_t states = kFp32Bytes * moments(strategy);
  const std::int64_t master = has_master(strategy) ? kFp32Bytes : 0;
  const std::int64_t read =
      plan::element_bytes(strategy.gradient_dtype) + states + (master > 0 ? master : parameter);
  const std::int64_t written = states + master + parameter;
  return streaming_kernel(update_flops(strategy.optimizer) * static_cast<double>(n), n * read, n * written,
                          launches(n, updated_tensors(model, strategy)));
}

void zero_gradients(const StageModel& model, const Strategy& strategy, Emitter& emitter) {
  const StageScope scope{emitter, plan::Stage::kOptimizer};
  emitter.builder.compute(emitter.compute, "optimizer.zero_gradients", zero_kernel(model, strategy));
}

void update_parameters(const StageModel& model, const Strategy& strategy, const Groups& groups, Emitter& emitter) {
  const StageScope scope{emitter, plan::Stage::kOptimizer};
  if (strategy.clip_gradients) {
    emitter.builder.compute(emitter.compute, "optimizer.norm", norm_kernel(model, strategy));
    if (groups.norm) {
      const plan::Purpose purpose = shard_size(strategy) > 1 || strategy.ep > 1 ? plan::Purpose::kData
                                    : strategy.pp > 1        ? plan::Purpose::kPipeline
                                                             : plan::Purpose::kTensor;
      emitter.builder.collective(
          emitter.compute, "optimizer.norm",
          {plan::CollectiveKind::kAllReduce, *groups.norm, Bytes{kFp32Bytes}, plan::Dtype::kFp32, purpose});
    }
  }
  emitter.builder.compute(emitter.compute, "optimizer.update", update_kernel(model, strategy));
}

}  // namespace stepcast::parallel
