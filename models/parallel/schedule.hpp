// models/parallel/schedule.hpp — the order in which a pipeline stage runs its micro-batches.
//
// Symbols  p stages, i stage, m micro-batches, F forward, B backward
// GPipe    F 0 .. m-1, then B 0 .. m-1 (Huang et al. 2019; backward in the order of PyTorch's
//          ScheduleGPipe). Micro-batches alive at the peak: m.
// 1F1B     min(p-1-i, m) warm-up F, then F and B in turn, then the B that are left (Narayanan et al.
//          2019, 2021). Micro-batches alive at the peak: min(p-i, m).
#pragma once

#include <cstdint>
#include <vector>

#include "models/parallel/strategy.hpp"

namespace stepcast::parallel {

enum class Direction : std::uint8_t { kForward, kBackward };

struct Action {
  Direction direction = Direction::kForward;
  std::uint16_t micro_batch = 0;
  friend auto operator<=>(const Action&, const Action&) = default;
};

std::vector<Action> stage_actions(Schedule schedule, std::int32_t stage, std::int32_t stages,
                                  std::int64_t micro_batches);

}  // namespace stepcast::parallel
