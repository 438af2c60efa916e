#include "models/parallel/data_parallel.hpp"

#include "models/parallel/optimizer.hpp"
#include "models/parallel/replicated.hpp"
#include "models/parallel/sharded.hpp"

namespace stepcast::parallel {

using plan::CollectiveKind;
using plan::Purpose;

std::unique_ptr<DataParallel> make_data_parallel(const DataParallelContext& context) {
  if (dense_replicas(context.strategy) == 1 && !is_replicated(context, Kind::kExpert) && !context.strategy.offload.parameters)
    return std::make_unique<DataParallel>();
  if (context.strategy.zero == 3) return std::make_unique<Sharded>(context);
  return std::make_unique<Replicated>(context);
}

void cast_for_reduction(const DataParallelContext& context, std::int64_t elements) {
  const Strategy& s = context.strategy;
  if (elements == 0 || reduce_dtype(s) == s.gradient_dtype) return;
  const StageScope scope{context.emitter, plan::Stage::kGradientSync};
  plan::Kernel kernel = streaming_kernel(0, gradient_bytes(s, elements).count(), reduced_bytes(s, elements).count(), 1);
  kernel.op = plan::OpClass::kElementwise;
  context.emitter.builder.compute(context.emitter.compute, "gradient.cast", kernel);
}

void reduce_gradient(const DataParallelContext& context, plan::StreamId stream, std::string_view label,
                     std::int64_t elements, Kind kind) {
  if (elements == 0 || !is_replicated(context, kind)) return;
  const Strategy& s = context.strategy;
  const StageScope scope{context.emitter, plan::Stage::kGradientSync};
  plan::ProgramBuilder& builder = context.emitter.builder;
  const ReplicaGroups& groups = context.groups.of(kind);
  if (!groups.shard) {
    builder.collective(stream, label, {CollectiveKind::kAllReduce, *groups.all, reduced_bytes(s, elements),
                                       reduce_dtype(s), Purpose::kData});
    return;
  }
  const std::int64_t padded = padded_to_shards(s, elements, kind);
  builder.collective(stream, label, {CollectiveKind::kReduceScatter, *groups.shard, reduced_bytes(s, padded),
                                     reduce_dtype(s), Purpose::kData});
  if (groups.replica) {
    builder.collective(stream, label,
                       {CollectiveKind::kAllReduce, *groups.replica,
                        reduced_bytes(s, padded / shard_size(s, kind)), reduce_dtype(s), Purpose::kData});
  }
}

}  // namespace stepcast::parallel
