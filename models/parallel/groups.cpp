#include "models/parallel/groups.hpp"

namespace stepcast::parallel {
namespace {

using plan::Axis;
using plan::AxisSplit;
using plan::RankSlice;

class Maker {
 public:
  Maker(const Strategy& strategy, std::vector<plan::Group>& groups) : s_{strategy}, groups_{groups} {}

  std::optional<plan::GroupId> add(plan::Group group) {
    groups_.push_back(std::move(group));
    return plan::GroupId{groups_.size() - 1};
  }

  ReplicaGroups dense() {
    ReplicaGroups result;
    const std::int32_t shard = shard_size(s_);
    const bool split = shard > 1 && shard < dense_replicas(s_);
    std::vector<Axis> axes;
    if (s_.cp > 1) axes.push_back(Axis::kContext);
    if (s_.dp > 1) axes.push_back(Axis::kData);
    if (axes.empty()) return result;
    const std::string name = s_.cp > 1 ? "dp-cp" : "dp";
    if (!split) {
      result.all = add({name, axes, {}, {}});
      if (shard > 1) result.shard = result.all;
      return result;
    }
    if (s_.cp == 1) {
      result.shard = add({"dp.shard", axes, {}, AxisSplit{Axis::kData, shard, false}});
      result.replica = add({"dp.replica", axes, {}, AxisSplit{Axis::kData, shard, true}});
    } else {
      result.shard = add({"dp-cp.shard", axes, {}, {}, RankSlice{1, shard}});
      result.replica = add({"dp-cp.replica", axes, {}, {}, RankSlice{shard, dense_replicas(s_) / shard}});
    }
    return result;
  }

  void experts(Groups& result) {
    const std::int32_t etp = expert_tensor(s_);
    const std::int32_t edp = expert_replicas(s_);
    std::int32_t stride = 1;
    for (const Axis axis : s_.order) {
      if (axis == Axis::kTensor) {
        if (etp > 1) result.expert_tensor = slice("etp", stride, etp);
        stride *= etp;
      } else if (axis == Axis::kExpert) {
        const std::int32_t within = s_.ep_within.value_or(1);
        if (s_.ep > 1 && !s_.ep_within) result.expert = slice("ep", stride, s_.ep);
        if (within > 1) result.expert_within = slice("ep.within", stride, within);
        if (s_.ep_within && s_.ep > within) result.expert_across = slice("ep.across", stride * within, s_.ep / within);
        stride *= s_.ep;
      } else if (axis == Axis::kData) {
        if (edp > 1) result.experts.all = slice("edp", stride, edp);
        stride *= edp;
      }
    }
    if (s_.zero > 0) result.experts.shard = result.experts.all;
  }

 private:
  std::optional<plan::GroupId> slice(const char* name, std::int32_t stride, std::int32_t size) {
    return add({name, {Axis::kTensor, Axis::kContext, Axis::kData}, {}, {}, RankSlice{stride, size}});
  }

  const Strategy& s_;
  std::vector<plan::Group>& groups_;
};

void add_loads(const Strategy& strategy, const workload::ExpertShape& experts, Groups& groups, plan::Plan& plan) {
  const std::vector<double> loads = workload::rank_loads(experts.count, strategy.ep, strategy.routing);
  const auto add = [&](const char* name, plan::VolumeForm form) {
    plan.volumes.push_back({name, form, loads});
    return plan::VolumesId{plan.volumes.size() - 1};
  };
  groups.to_experts = add("to experts", plan::VolumeForm::kReceivers);
  groups.from_experts = add("from experts", plan::VolumeForm::kSenders);
}

}  // namespace

Groups make_groups(const Strategy& strategy, const workload::ModelShape& shape, plan::Plan& plan) {
  Groups result;
  Maker make{strategy, plan.groups};
  if (strategy.tp > 1) result.tensor = make.add({"tp", {Axis::kTensor}, {}, {}});
  if (strategy.cp > 1) result.context = make.add({"cp", {Axis::kContext}, {}, {}});
  result.dense = make.dense();
  if (shape.experts) make.experts(result);
  if (result.expert && strategy.routing.skew > 0.0 && !strategy.routing.capacity_factor) add_loads(strategy, *shape.experts, result, plan);
  const bool two_tables = shape.tied_embeddings || shape.predicted_ahead > 0;
  if (two_tables && !placement_of(strategy).joins_ends()) {
    result.embedding = make.add({"embedding", {Axis::kPipeline}, {0, strategy.pp - 1}, {}});
  }
  if (placement_of(strategy).arrangement == Arrangement::kDual) {
    for (std::int32_t stage = 0; stage < strategy.pp / 2; ++stage) {
      const std::int32_t mirror = strategy.pp - 1 - stage;
      result.copies.push_back(*make.add({"copies." + std::to_string(stage), {Axis::kPipeline}, {stage, mirror}, {}}));
    }
  }
  if (!strategy.clip_gradients) return result;

  // Every worker of the model holds a part of the gradient; under ZeRO, every worker of the shard group;
  // where experts are dealt out, every worker.
  const std::int32_t shard = shard_size(strategy);
  const bool everyone = strategy.ep > 1;
  plan::Group norm{"norm", {}, {}, {}};
  if (strategy.tp > 1) norm.axes.push_back(Axis::kTensor);
  if (strategy.cp > 1 && (shard > 1 || everyone)) norm.axes.push_back(Axis::kContext);
  if (strategy.dp > 1 && (shard > 1 || everyone)) norm.axes.push_back(Axis::kData);
  if (strategy.pp > 1) norm.axes.push_back(Axis::kPipeline);
  if (shard > 1 && shard < dense_replicas(strategy) && strategy.cp == 1) norm.split = AxisSplit{Axis::kData, shard, false};
  if (!norm.axes.empty()) result.norm = make.add(std::move(norm));
  return result;
}

}  // namespace stepcast::parallel
