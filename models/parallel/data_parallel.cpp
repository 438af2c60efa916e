#include "models/parallel/data_parallel.hpp"

#include "models/parallel/replicated.hpp"
#include "models/parallel/sharded.hpp"

namespace stepcast::parallel {

using plan::CollectiveKind;
using plan::Purpose;

std::unique_ptr<DataParallel> make_data_parallel(const DataParallelContext& context) {
  if (dense_replicas(context.strategy) == 1 && !is_replicated(context, Kind::kExpert)) return std::make_unique<DataParallel>();
  if (context.strategy.zero == 3) return std::make_unique<Sharded>(context);
  return std::make_unique<Replicated>(context);
}

void reduce_gradient(const DataParallelContext& context, plan::StreamId stream, std::string_view label,
                     std::int64_t elements, Kind kind) {
  if (elements == 0 || !is_replicated(context, kind)) return;
  const Strategy& s = context.strategy;
  const StageScope scope{context.emitter, plan::Stage::kGradientSync};
  plan::ProgramBuilder& builder = context.emitter.builder;
  const ReplicaGroups& groups = context.groups.of(kind);
  if (!groups.shard) {
    builder.collective(stream, label, {CollectiveKind::kAllReduce, *groups.all, gradient_bytes(s, elements),
                                       s.gradient_dtype, Purpose::kData});
    return;
  }
  const std::int64_t padded = padded_to_shards(s, elements, kind);
  builder.collective(stream, label, {CollectiveKind::kReduceScatter, *groups.shard, gradient_bytes(s, padded),
                                     s.gradient_dtype, Purpose::kData});
  if (groups.replica) {
    builder.collective(stream, label,
                       {CollectiveKind::kAllReduce, *groups.replica,
                        gradient_bytes(s, padded / shard_size(s, kind)), s.gradient_dtype, Purpose::kData});
  }
}

}  // namespace stepcast::parallel
