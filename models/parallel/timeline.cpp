#include "models/parallel/timeline.hpp"

#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

namespace stepcast::parallel {
namespace {

// What a pass leaves behind: the end of a forward pass, or of an input gradient.
std::uint64_t key(bool forward, ChunkPlace at, std::uint16_t micro_batch) {
  return (std::uint64_t{forward ? 1u : 0u} << 63) | (static_cast<std::uint64_t>(at.stage) << 32) |
         (std::uint64_t{at.chunk} << 16) | micro_batch;
}

std::optional<std::uint64_t> need_of(const Placement& placement, std::int32_t stage, const Pass& pass) {
  const ChunkPlace here{stage, pass.chunk};
  if (is_forward(pass)) {
    const auto from = placement.previous(here);
    return from ? std::optional{key(true, *from, pass.micro_batch)} : std::nullopt;
  }
  if (pass.kind == ActionKind::kBackwardWeight) return key(false, here, pass.micro_batch);
  const auto from = placement.next(here);
  return from ? key(false, *from, pass.micro_batch) : key(true, here, pass.micro_batch);
}

std::string to_text(const Pass& pass, char backward) {
  const char letter = is_forward(pass) ? 'F' : pass.kind == ActionKind::kBackwardWeight ? 'W' : backward;
  return pass.chunk == 0 ? fmt::format("{}{}", letter, pass.micro_batch)
                         : fmt::format("{}{}.{}", letter, pass.micro_batch, pass.chunk);
}

class Player {
 public:
  Player(const std::vector<ActionList>& lists, const Placement& placement, const PassCosts& costs)
      : lists_{lists}, placement_{placement}, costs_{costs}, at_(lists.size(), 0), free_(lists.size(), 0) {
    result_.slots.resize(lists.size());
  }

  Timeline run() && {
    bool moved = true;
    while (moved) {
      moved = false;
      for (std::size_t stage = 0; stage < lists_.size(); ++stage) moved = advance(stage) || moved;
    }
    for (std::size_t stage = 0; stage < lists_.size(); ++stage) {
      if (at_[stage] == lists_[stage].size()) continue;
      if (!result_.deadlock) result_.deadlock.emplace();
      *result_.deadlock += fmt::format("{}stage {} waits before {}", result_.deadlock->empty() ? "" : "; ", stage,
                                       parallel::to_text(lists_[stage][at_[stage]]));
    }
    return std::move(result_);
  }

 private:
  bool advance(std::size_t stage) {
    const std::size_t before = at_[stage];
    while (at_[stage] < lists_[stage].size()) {
      const Action& action = lists_[stage][at_[stage]];
      std::int64_t start = free_[stage];
      bool ready = true;
      for (const Pass& pass : Passes{action}) {
        const auto need = need_of(placement_, static_cast<std::int32_t>(stage), pass);
        if (!need) continue;
        const auto found = done_.find(*need);
        if (found == done_.end()) {
          ready = false;
          break;
        }
        start = std::max(start, found->second);
      }
      if (!ready) break;
      const std::int64_t end = start + costs_.of(action.kind);
      for (const Pass& pass : Passes{action}) {
        if (pass.kind == ActionKind::kBackwardWeight) continue;
        done_[key(is_forward(pass), {static_cast<std::int32_t>(stage), pass.chunk}, pass.micro_batch)] = end;
      }
      result_.slots[stage].push_back({start, end});
      free_[stage] = end;
      ++at_[stage];
    }
    return at_[stage] > before;
  }

  const std::vector<ActionList>& lists_;
  const Placement& placement_;
  const PassCosts& costs_;
  std::vector<std::size_t> at_;
  std::vector<std::int64_t> free_;
  std::unordered_map<std::uint64_t, std::int64_t> done_;  // looked up only
  Timeline result_;
};

std::int64_t busy(const std::vector<TimelineSlot>& slots) {
  std::int64_t sum = 0;
  for (const TimelineSlot& slot : slots) sum += slot.end - slot.start;
  return sum;
}

}  // namespace

std::int64_t PassCosts::of(ActionKind kind) const {
  switch (kind) {
    case ActionKind::kForward: return forward;
    case ActionKind::kBackward: return backward;
    case ActionKind::kBackwardInput: return input;
    case ActionKind::kBackwardWeight: return weight;
    case ActionKind::kOverlapped: return overlapped;
  }
  return 0;
}

std::int64_t Timeline::length() const {
  std::int64_t last = 0;
  for (const auto& stage : slots) last = std::max(last, stage.empty() ? 0 : stage.back().end);
  return last;
}

std::int64_t Timeline::idle_within(std::size_t stage) const {
  const auto& row = slots[stage];
  return row.empty() ? 0 : row.back().end - row.front().start - busy(row);
}

std::int64_t Timeline::idle_of_step(std::size_t stage) const { return length() - busy(slots[stage]); }

Timeline play(const std::vector<ActionList>& lists, const Placement& placement, const PassCosts& costs) {
  return Player{lists, placement, costs}.run();
}

std::int64_t peak_activations(const ActionList& list) {
  std::int64_t live = 0;
  std::int64_t peak = 0;
  for (const Action& action : list) {
    for (const Pass& pass : Passes{action}) {
      if (is_forward(pass)) peak = std::max(peak, ++live);
      if (gives_weight_gradient(pass)) --live;
    }
  }
  return peak;
}

std::string to_text(const Action& action) {
  std::string text;
  for (const Pass& pass : Passes{action}) text += (text.empty() ? "" : "&") + to_text(pass, 'B');
  return text;
}

}  // namespace stepcast::parallel
