#include "sim/plan/plan.hpp"

#include <algorithm>

#include "sim/base/check.hpp"

namespace stepcast::plan {
namespace {

// The coordinate values that a group takes on one of its axes.
struct Extent {
  std::int32_t stride = 0;
  std::vector<std::int32_t> values;
};

// The slice that `rank` lies in. Requires: `ranks` ascend and hold it.
std::vector<RankId> cut(const std::vector<RankId>& ranks, const RankSlice& slice, RankId rank) {
  const auto stride = static_cast<std::size_t>(slice.stride);
  const auto size = static_cast<std::size_t>(slice.size);
  SIM_CHECK(stride >= 1 && size >= 1 && ranks.size() % (stride * size) == 0, ranks.size(), stride, size);
  const auto at = static_cast<std::size_t>(std::lower_bound(ranks.begin(), ranks.end(), rank) - ranks.begin());
  const std::size_t first = at / (stride * size) * (stride * size) + at % stride;
  std::vector<RankId> members;
  for (std::size_t i = 0; i < size; ++i) members.push_back(ranks[first + i * stride]);
  return members;
}

}  // namespace

std::int32_t Plan::world_size() const {
  std::int64_t size = 1;
  for (const Axis axis : order) {
    size *= degrees[axis];
    SIM_CHECK(size > 0 && size <= INT32_MAX, size);
  }
  return static_cast<std::int32_t>(size);
}

PerAxis Plan::coordinates(RankId rank) const {
  PerAxis result{0};
  auto rest = static_cast<std::int64_t>(rank.value());
  for (const Axis axis : order) {
    result[axis] = static_cast<std::int32_t>(rest % degrees[axis]);
    rest /= degrees[axis];
  }
  SIM_CHECK(rest == 0, rank.value());
  return result;
}

RankId Plan::rank(const PerAxis& coordinates) const {
  std::int64_t value = 0;
  std::int64_t stride = 1;
  for (const Axis axis : order) {
    SIM_CHECK(coordinates[axis] >= 0 && coordinates[axis] < degrees[axis], name_of(axis), coordinates[axis]);
    value += coordinates[axis] * stride;
    stride *= degrees[axis];
  }
  return RankId{static_cast<std::uint32_t>(value)};
}

const Program& Plan::program(RankId rank) const {
  const auto stage = static_cast<std::size_t>(coordinates(rank)[Axis::kPipeline]);
  return programs.at(program_of_stage.at(stage).index());
}

std::vector<RankId> Plan::members(GroupId group, RankId rank) const {
  const Group& g = groups.at(group.index());
  const PerAxis own = coordinates(rank);
  std::vector<Extent> extents;  // slowest-varying axis first, so that ranks come out ascending
  std::int64_t base = 0;
  std::int64_t stride = 1;
  for (const Axis axis : order) {
    if (std::find(g.axes.begin(), g.axes.end(), axis) == g.axes.end()) {
      base += own[axis] * stride;
    } else {
      Extent extent{static_cast<std::int32_t>(stride), {}};
      if (axis == Axis::kPipeline && !g.stages.empty()) {
        extent.values = g.stages;
      } else if (g.split && g.split->axis == axis) {
        const std::int32_t block = g.split->block;
        SIM_CHECK(block >= 1 && degrees[axis] % block == 0, g.name, block, degrees[axis]);
        const std::int32_t first = g.split->across ? own[axis] % block : own[axis] / block * block;
        const std::int32_t step = g.split->across ? block : 1;
        const std::int32_t count = g.split->across ? degrees[axis] / block : block;
        for (std::int32_t i = 0; i < count; ++i) extent.values.push_back(first + i * step);
      } else {
        for (std::int32_t i = 0; i < degrees[axis]; ++i) extent.values.push_back(i);
      }
      extents.insert(extents.begin(), std::move(extent));
    }
    stride *= degrees[axis];
  }
  std::vector<RankId> ranks{RankId{static_cast<std::uint32_t>(base)}};
  for (const Extent& extent : extents) {
    std::vector<RankId> next;
    next.reserve(ranks.size() * extent.values.size());
    for (const RankId prefix : ranks) {
      for (const std::int32_t value : extent.values) {
        next.emplace_back(prefix.value() + static_cast<std::uint32_t>(value) * static_cast<std::uint32_t>(extent.stride));
      }
    }
    ranks = std::move(next);
  }
  return g.slice ? cut(ranks, *g.slice, rank) : ranks;
}

RankId Plan::peer(RankId rank, std::int32_t stage) const {
  PerAxis other = coordinates(rank);
  other[Axis::kPipeline] = stage;
  return this->rank(other);
}

}  // namespace stepcast::plan
