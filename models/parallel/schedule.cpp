#include "models/parallel/schedule.hpp"

#include <algorithm>

#include "sim/base/check.hpp"

namespace stepcast::parallel {

std::vector<Action> stage_actions(Schedule schedule, std::int32_t stage, std::int32_t stages,
                                  std::int64_t micro_batches) {
  SIM_CHECK(stage >= 0 && stage < stages && micro_batches >= 1, stage, stages, micro_batches);
  const std::int64_t ahead = schedule == Schedule::kGpipe
                                 ? micro_batches
                                 : std::min<std::int64_t>(stages - 1 - stage, micro_batches);
  std::vector<Action> actions;
  actions.reserve(static_cast<std::size_t>(2 * micro_batches));
  const auto add = [&](Direction direction, std::int64_t micro_batch) {
    actions.push_back({direction, static_cast<std::uint16_t>(micro_batch)});
  };
  for (std::int64_t k = 0; k < ahead; ++k) add(Direction::kForward, k);
  for (std::int64_t k = 0; k < micro_batches; ++k) {
    if (ahead + k < micro_batches) add(Direction::kForward, ahead + k);
    add(Direction::kBackward, k);
  }
  return actions;
}

}  // namespace stepcast::parallel
