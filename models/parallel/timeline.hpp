// models/parallel/timeline.hpp — a schedule played with fixed costs and free links: when every action
// runs, or why none can go on.
//
// Model    an action starts when the one before it on its stage has ended and what its passes need is
//          there: F the F of the position before; B the B of the position after (at the end: its own F);
//          W its own B
// Ignores  transfers, and that passes of different chunks cost differently
// Cost     O(actions + stages x sweeps)
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/parallel/action.hpp"
#include "models/parallel/placement.hpp"

namespace stepcast::parallel {

// In any unit, of one chunk.
struct PassCosts {
  std::int64_t forward = 1;
  std::int64_t input = 1;       // B alone
  std::int64_t weight = 1;      // W alone
  std::int64_t backward = 2;    // both
  std::int64_t overlapped = 3;  // F&B
  [[nodiscard]] std::int64_t of(ActionKind kind) const;
};

struct TimelineSlot {
  std::int64_t start = 0;
  std::int64_t end = 0;
};

struct Timeline {
  std::vector<std::vector<TimelineSlot>> slots;  // [stage][action]
  // Set when stages wait for each other: what each of them would do next and what it lacks.
  std::optional<std::string> deadlock;

  [[nodiscard]] std::int64_t length() const;
  // Idle time of a stage: between its first and its last action, or over the whole step.
  [[nodiscard]] std::int64_t idle_within(std::size_t stage) const;
  [[nodiscard]] std::int64_t idle_of_step(std::size_t stage) const;
};

// Requires: every chunk and stage of the lists is the placement's.
Timeline play(const std::vector<ActionList>& lists, const Placement& placement, const PassCosts& costs = {});

// Chunk activations that a stage holds at its peak: from F to the end of the pass that gives the weights' gradient.
std::int64_t peak_activations(const ActionList& list);

// "F3", "B3.1", "W0", "F4&B1.1": as a schedule file spells it.
std::string to_text(const Action& action);

}  // namespace stepcast::parallel
