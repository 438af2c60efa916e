// models/parallel/groups.hpp — the process groups that a strategy needs. A group of one worker is not
// made: what would run over it does not run.
#pragma once

#include <optional>
#include <vector>

#include "models/parallel/strategy.hpp"
#include "sim/plan/plan.hpp"

namespace stepcast::parallel {

struct Groups {
  std::optional<plan::GroupId> tensor;
  std::optional<plan::GroupId> data;       // all data ranks
  std::optional<plan::GroupId> shard;      // ZeRO: the workers that share one copy of the states
  std::optional<plan::GroupId> replica;    // ZeRO: the holders of one shard
  std::optional<plan::GroupId> embedding;  // first and last stage, unless one stage is both
  std::vector<plan::GroupId> copies;       // DualPipe: by the lower stage of the two that hold the same parts
  std::optional<plan::GroupId> norm;       // the workers over which the gradient norm is summed
};

Groups make_groups(const Strategy& strategy, bool tied_embeddings, std::vector<plan::Group>& groups);

}  // namespace stepcast::parallel
