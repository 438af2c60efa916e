#include "models/parallel/schedule.hpp"

#include <algorithm>

#include "sim/base/check.hpp"

namespace stepcast::parallel {
namespace {

Action act(ActionKind kind, std::int64_t chunk, std::int64_t micro_batch) {
  return {kind, static_cast<std::uint8_t>(chunk), static_cast<std::uint16_t>(micro_batch)};
}

ActionList one_forward_one_backward(std::int64_t ahead, std::int64_t micro_batches) {
  ActionList actions;
  actions.reserve(static_cast<std::size_t>(2 * micro_batches));
  for (std::int64_t k = 0; k < ahead; ++k) actions.push_back(act(ActionKind::kForward, 0, k));
  for (std::int64_t k = 0; k < micro_batches; ++k) {
    if (ahead + k < micro_batches) actions.push_back(act(ActionKind::kForward, 0, ahead + k));
    actions.push_back(act(ActionKind::kBackward, 0, k));
  }
  return actions;
}

// Micro-batches that pass one chunk before the next chunk has its turn.
std::int64_t group_size(std::int64_t stages, std::int64_t micro_batches) {
  std::int64_t group = stages;
  while (micro_batches % group != 0 && micro_batches % group < stages) ++group;
  return group;
}

ActionList stage_actions(Schedule schedule, std::int32_t stage, const Placement& placement, std::int64_t m) {
  const std::int64_t behind = placement.stages - 1 - stage;
  switch (schedule) {
    case Schedule::kGpipe: return one_forward_one_backward(m, m);
    case Schedule::kOneFOneB:
    case Schedule::kInterleaved:
      return placement.chunks == 1 ? one_forward_one_backward(std::min(behind, m), m)
                                   : interleaved_actions(stage, placement.stages, placement.chunks, m);
    case Schedule::kOneFOneBOverlap: return one_forward_one_backward(std::min(2 * behind, m), m);
    case Schedule::kZbH1: return zero_bubble_actions(std::min(behind + 1, m), stage, m);
    case Schedule::kZbH2: return zero_bubble_actions(std::min(2 * behind + 1, m), 2 * std::int64_t{stage}, m);
    case Schedule::kDualPipe: return dualpipe_actions(stage, placement.stages, m);
    case Schedule::kDualPipeV: return dualpipe_v_actions(stage, placement.stages, m);
    case Schedule::kZbV:
    case Schedule::kVHalf:
    case Schedule::kVMin:
    case Schedule::kFile: break;
  }
  SIM_CHECK(false, name_of(schedule));
  return {};
}

}  // namespace

ActionList interleaved_actions(std::int32_t stage, std::int32_t stages, std::int32_t chunks, std::int64_t micro_batches) {
  const std::int64_t group = group_size(stages, micro_batches);
  struct Turn {
    std::int64_t chunk;
    std::int64_t micro_batch;
  };
  std::vector<Turn> turns;
  for (std::int64_t first = 0; first < micro_batches; first += group) {
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
      for (std::int64_t k = first; k < std::min(first + group, micro_batches); ++k) turns.push_back({chunk, k});
    }
  }
  const std::size_t total = turns.size();
  const auto ahead = static_cast<std::size_t>(
      std::min<std::int64_t>(2 * (stages - 1 - stage) + (chunks - 1) * group, static_cast<std::int64_t>(total)));
  ActionList actions;
  const auto forward = [&](std::size_t n) {
    actions.push_back(act(ActionKind::kForward, turns[n].chunk, turns[n].micro_batch));
  };
  for (std::size_t n = 0; n < ahead; ++n) forward(n);
  for (std::size_t n = 0; n < total; ++n) {
    if (ahead + n < total) forward(ahead + n);
    actions.push_back(act(ActionKind::kBackward, chunks - 1 - turns[n].chunk, turns[n].micro_batch));
  }
  return actions;
}

// After each B the W that is due, then the next F: so a W never stands before a B that another stage
// waits for, and no activation is added before one is freed.
ActionList zero_bubble_actions(std::int64_t ahead, std::int64_t delay, std::int64_t micro_batches) {
  ActionList actions;
  for (std::int64_t k = 0; k < ahead; ++k) actions.push_back(act(ActionKind::kForward, 0, k));
  for (std::int64_t k = 0; k < micro_batches; ++k) {
    actions.push_back(act(ActionKind::kBackwardInput, 0, k));
    if (k >= delay) actions.push_back(act(ActionKind::kBackwardWeight, 0, k - delay));
    if (ahead + k < micro_batches) actions.push_back(act(ActionKind::kForward, 0, ahead + k));
  }
  for (std::int64_t k = std::max<std::int64_t>(0, micro_batches - delay); k < micro_batches; ++k)
    actions.push_back(act(ActionKind::kBackwardWeight, 0, k));
  return actions;
}

const char* name_of(Schedule schedule) {
  switch (schedule) {
    case Schedule::kGpipe: return "gpipe";
    case Schedule::kOneFOneB: return "1f1b";
    case Schedule::kOneFOneBOverlap: return "1f1b-overlap";
    case Schedule::kInterleaved: return "interleaved";
    case Schedule::kZbH1: return "zb-h1";
    case Schedule::kZbH2: return "zb-h2";
    case Schedule::kZbV: return "zb-v";
    case Schedule::kVHalf: return "v-half";
    case Schedule::kVMin: return "v-min";
    case Schedule::kDualPipe: return "dualpipe";
    case Schedule::kDualPipeV: return "dualpipe-v";
    case Schedule::kFile: return "file";
  }
  return "";
}

Placement placement_of(Schedule schedule, std::int32_t stages, std::int32_t chunks) {
  switch (schedule) {
    case Schedule::kZbV:
    case Schedule::kVHalf:
    case Schedule::kVMin:
    case Schedule::kDualPipeV: return {Arrangement::kV, stages, 2};
    case Schedule::kDualPipe: return {Arrangement::kDual, stages, 2};
    default: return {chunks == 1 ? Arrangement::kLinear : Arrangement::kInterleaved, stages, chunks};
  }
}

std::vector<ActionList> make_schedule(Schedule schedule, const Placement& placement, std::int64_t micro_batches) {
  SIM_CHECK(placement.stages >= 1 && micro_batches >= 1, placement.stages, micro_batches);
  if (schedule == Schedule::kZbV || schedule == Schedule::kVHalf || schedule == Schedule::kVMin)
    return v_schedule(schedule, placement.stages, micro_batches);
  std::vector<ActionList> lists;
  for (std::int32_t stage = 0; stage < placement.stages; ++stage)
    lists.push_back(stage_actions(schedule, stage, placement, micro_batches));
  return lists;
}

}  // namespace stepcast::parallel
