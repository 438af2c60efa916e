#include "models/parallel/groups.hpp"

namespace stepcast::parallel {

using plan::Axis;
using plan::AxisSplit;

Groups make_groups(const Strategy& strategy, bool tied_embeddings, std::vector<plan::Group>& groups) {
  Groups result;
  const auto add = [&](plan::Group group) {
    groups.push_back(std::move(group));
    return plan::GroupId{groups.size() - 1};
  };
  const std::int32_t shard = shard_size(strategy);
  const bool split = shard > 1 && shard < strategy.dp;

  if (strategy.tp > 1) result.tensor = add({"tp", {Axis::kTensor}, {}, {}});
  if (strategy.dp > 1 && !split) result.data = add({"dp", {Axis::kData}, {}, {}});
  if (split) {
    result.shard = add({"dp.shard", {Axis::kData}, {}, AxisSplit{Axis::kData, shard, false}});
    result.replica = add({"dp.replica", {Axis::kData}, {}, AxisSplit{Axis::kData, shard, true}});
  } else if (shard > 1) {
    result.shard = result.data;
  }
  if (tied_embeddings && !placement_of(strategy).joins_ends()) {
    result.embedding = add({"embedding", {Axis::kPipeline}, {0, strategy.pp - 1}, {}});
  }
  if (placement_of(strategy).arrangement == Arrangement::kDual) {
    for (std::int32_t stage = 0; stage < strategy.pp / 2; ++stage) {
      const std::int32_t mirror = strategy.pp - 1 - stage;
      result.copies.push_back(add({"copies." + std::to_string(stage), {Axis::kPipeline}, {stage, mirror}, {}}));
    }
  }
  if (!strategy.clip_gradients) return result;

  // Every worker of the model holds a part of the gradient; under ZeRO, every worker of the shard group.
  plan::Group norm{"norm", {}, {}, {}};
  if (strategy.tp > 1) norm.axes.push_back(Axis::kTensor);
  if (shard > 1) norm.axes.push_back(Axis::kData);
  if (strategy.pp > 1) norm.axes.push_back(Axis::kPipeline);
  if (split) norm.split = AxisSplit{Axis::kData, shard, false};
  if (!norm.axes.empty()) result.norm = add(std::move(norm));
  return result;
}

}  // namespace stepcast::parallel
