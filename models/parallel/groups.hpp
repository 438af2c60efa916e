// models/parallel/groups.hpp — the process groups that a strategy needs. A group of one worker is not
// made: what would run over it does not run.
//
// Experts  the workers of a stage, in rank order, are counted anew with degrees etp, ep, edp in the places
//          that tp, ep, dp have in the axis order, whatever cp is: with tp-cp-ep-dp-pp, etp neighbours share
//          an expert, ep of such blocks in a row hold all experts, and the rest repeats that edp times
// Source   Megatron-Core parallel_state.py, expert_decoder_rank_generator (MoE Parallel Folding,
//          arXiv 2504.14960)
#pragma once

#include <optional>
#include <vector>

#include "models/parallel/strategy.hpp"
#include "sim/plan/plan.hpp"

namespace stepcast::parallel {

// Over which the gradients of one kind of parameters are summed.
struct ReplicaGroups {
  std::optional<plan::GroupId> all;      // every holder
  std::optional<plan::GroupId> shard;    // ZeRO: the workers that share one copy of the states
  std::optional<plan::GroupId> replica;  // ZeRO: the holders of one shard
};

struct Groups {
  std::optional<plan::GroupId> tensor;
  std::optional<plan::GroupId> context;
  std::optional<plan::GroupId> expert;         // experts dealt out over these
  std::optional<plan::GroupId> expert_tensor;  // that share each expert
  std::optional<plan::VolumesId> to_experts;    // how skewed routing parts an exchange over `expert`
  std::optional<plan::VolumesId> from_experts;
  std::optional<plan::GroupId> expert_across;  // of `expert`: the same place on every host
  std::optional<plan::GroupId> expert_within;  // of `expert`: one host
  ReplicaGroups dense;
  ReplicaGroups experts;
  std::optional<plan::GroupId> embedding;      // first and last stage, unless one stage is both
  std::vector<plan::GroupId> copies;           // DualPipe: by the lower stage of the two that hold the same parts
  std::optional<plan::GroupId> norm;           // the workers over which the gradient norm is summed

  [[nodiscard]] const ReplicaGroups& of(Kind kind) const { return kind == Kind::kExpert ? experts : dense; }
};

// Adds groups and tables of volumes to the plan. `shape` decides whether there are experts and whether two stages
// hold the embedding.
Groups make_groups(const Strategy& strategy, const workload::ModelShape& shape, plan::Plan& plan);

}  // namespace stepcast::parallel
