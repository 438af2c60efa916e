// ZB-V, V-Half and V-Min: one repeating block for each stage, made denser at both ends of the step.
//
// Symbols  p stages, i stage from 0; one unit for each of F, B, W of a chunk (two chunks a stage)
// Block    the times of a micro-batch's four passes on stage i; the next one follows 6 units later:
//            F0 = i a            F1 = F0(p-1) + 1 + g1 + (p-1-i) b
//            B1 = F1(0) + 1 + g2 + i c        B0 = B1(p-1) + 1 + g3 + (p-1-i) d                   (1)
//          with (a, b, c, d) = (4, 2, 4, 2) for ZB-V, (2, 1, 2, 1) for V-Half, (1, 1, 1, 1) for V-Min.
//          The gaps g1, g2, g3 are the least ones (in sum, then in order) with which no two passes of a
//          stage fall on the same unit modulo 6; W takes the two units that are left.
// Memory   a stage holds l / 6 chunk activations, l the sum of the times from F to W of both chunks:
//          2p, about p, about 2p/3 of them, that is p, p/2, p/3 micro-batches
// Ends     each stage keeps the block's order of F and B but runs as early as it can; W fills units that
//          would stand empty, and ZB-V then takes the next pass that is ready, within the block's memory
// Source   Qi, Wan, Amar, Lin 2024, "Pipeline parallelism with controllable memory", sections 3 and 4
//          (the offsets); Qi et al. 2023, "Zero bubble pipeline parallelism", section 6 (ZB-V)
#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <set>

#include "models/parallel/schedule.hpp"
#include "sim/base/check.hpp"

namespace stepcast::parallel {
namespace {

constexpr std::int64_t kInterval = 6;

using Offsets = std::array<std::int64_t, 4>;              // F0, F1, B1, B0
using Block = std::vector<std::array<std::int64_t, 4>>;  // [stage]
constexpr std::array<Pass, 4> kPasses{Pass{ActionKind::kForward, 0, 0}, Pass{ActionKind::kForward, 1, 0},
                                      Pass{ActionKind::kBackwardInput, 1, 0}, Pass{ActionKind::kBackwardInput, 0, 0}};

Offsets offsets_of(Schedule schedule) {
  if (schedule == Schedule::kZbV) return {4, 2, 4, 2};
  if (schedule == Schedule::kVHalf) return {2, 1, 2, 1};
  return {1, 1, 1, 1};
}

Block block_with(std::int32_t stages, const Offsets& o, const std::array<std::int64_t, 3>& gap) {
  Block block(static_cast<std::size_t>(stages));
  const std::int64_t last = stages - 1;
  const std::int64_t f1 = last * o[0] + 1 + gap[0];
  const std::int64_t b1 = f1 + last * o[1] + 1 + gap[1];
  const std::int64_t b0 = b1 + last * o[2] + 1 + gap[2];
  for (std::int64_t i = 0; i < stages; ++i)
    block[static_cast<std::size_t>(i)] = {i * o[0], f1 + (last - i) * o[1], b1 + i * o[2], b0 + (last - i) * o[3]};
  return block;
}

bool collides(const Block& block) {
  for (const auto& times : block) {
    std::set<std::int64_t> units;
    for (const std::int64_t t : times) units.insert(t % kInterval);
    if (units.size() < times.size()) return true;
  }
  return false;
}

Block densest_block(std::int32_t stages, const Offsets& offsets) {
  for (std::int64_t sum = 0; sum <= 3 * (kInterval - 1); ++sum) {
    for (std::int64_t a = 0; a < kInterval; ++a) {
      for (std::int64_t b = 0; b < kInterval; ++b) {
        const std::int64_t c = sum - a - b;
        if (c < 0 || c >= kInterval) continue;
        const Block block = block_with(stages, offsets, {a, b, c});
        if (!collides(block)) return block;
      }
    }
  }
  SIM_CHECK(false, stages);
  return {};
}

// Chunk activations alive at the peak of the endless repetition.
std::int64_t block_memory(const Block& block) {
  std::int64_t most = 0;
  for (const auto& times : block) {
    std::set<std::int64_t> left;
    for (std::int64_t u = 0; u < kInterval; ++u) left.insert(u);
    for (const std::int64_t t : times) left.erase(t % kInterval);
    const auto weight_after = [&](std::int64_t backward, std::int64_t unit) {
      return backward + 1 + ((unit - backward - 1) % kInterval + kInterval) % kInterval;
    };
    const std::int64_t x = *left.begin();
    const std::int64_t y = *left.rbegin();
    const bool swap = weight_after(times[2], y) + weight_after(times[3], x) <
                      weight_after(times[2], x) + weight_after(times[3], y);
    const std::array<std::int64_t, 2> ends{weight_after(times[3], swap ? x : y), weight_after(times[2], swap ? y : x)};
    // Live at unit u of a late period: one for each period between F and the end of W.
    for (std::int64_t u = 0; u < kInterval; ++u) {
      std::int64_t live = 0;
      for (std::size_t chunk = 0; chunk < 2; ++chunk) {
        for (std::int64_t t = times[chunk]; t <= ends[chunk]; ++t) live += t % kInterval == u ? 1 : 0;
      }
      most = std::max(most, live);
    }
  }
  return most;
}

class Filler {
 public:
  Filler(const Block& block, const Placement& placement, std::int64_t micro_batches, bool pulls)
      : placement_{placement}, memory_{block_memory(block)}, pulls_{pulls}, stages_(block.size()), lists_(block.size()) {
    for (std::size_t i = 0; i < block.size(); ++i) {
      std::vector<std::pair<std::int64_t, Pass>> timed;
      for (std::int64_t k = 0; k < micro_batches; ++k) {
        for (std::size_t pass = 0; pass < kPasses.size(); ++pass) {
          timed.emplace_back(block[i][pass] + kInterval * k, kPasses[pass]);
          timed.back().second.micro_batch = static_cast<std::uint16_t>(k);
        }
      }
      std::sort(timed.begin(), timed.end());
      for (const auto& [time, pass] : timed) stages_[i].order.push_back(pass);
    }
    left_ = block.size() * static_cast<std::size_t>(micro_batches) * 6;
  }

  std::vector<ActionList> run() && {
    const std::size_t most = 6 * (left_ + lists_.size());  // else the order and the memory shut each other out
    for (std::size_t now = 0; left_ > 0; ++now) {
      SIM_CHECK(now < most, left_, memory_);
      ended_.clear();
      for (std::size_t stage = 0; stage < stages_.size(); ++stage) one_unit(stage);
      done_.insert(ended_.begin(), ended_.end());
    }
    return std::move(lists_);
  }

 private:
  struct StageState {
    std::deque<Pass> order;
    std::deque<Pass> weights;
    std::int64_t live = 0;
  };
  using Done = std::tuple<bool, ChunkPlace, std::uint16_t>;

  bool ready(std::size_t stage, const Pass& pass) const {
    const ChunkPlace here{static_cast<std::int32_t>(stage), pass.chunk};
    if (is_forward(pass)) {
      if (stages_[stage].live >= memory_) return false;
      const auto from = placement_.previous(here);
      return !from || done_.contains({true, *from, pass.micro_batch});
    }
    const auto from = placement_.next(here);
    return from ? done_.contains({false, *from, pass.micro_batch}) : done_.contains({true, here, pass.micro_batch});
  }

  void one_unit(std::size_t stage) {
    StageState& s = stages_[stage];
    if (!s.order.empty() && ready(stage, s.order.front())) return start(stage, 0);
    if (!s.weights.empty()) {
      lists_[stage].push_back({ActionKind::kBackwardWeight, s.weights.front().chunk, s.weights.front().micro_batch});
      s.weights.pop_front();
      --s.live;
      --left_;
      return;
    }
    if (!pulls_) return;
    std::set<std::pair<ActionKind, std::uint8_t>> seen;  // passes of one kind and chunk keep their order
    for (std::size_t n = 0; n < s.order.size() && seen.size() < kPasses.size(); ++n) {
      if (seen.insert({s.order[n].kind, s.order[n].chunk}).second && ready(stage, s.order[n])) return start(stage, n);
    }
  }

  void start(std::size_t stage, std::size_t n) {
    StageState& s = stages_[stage];
    const Pass pass = s.order[n];
    s.order.erase(s.order.begin() + static_cast<std::ptrdiff_t>(n));
    lists_[stage].push_back({pass.kind, pass.chunk, pass.micro_batch});
    ended_.emplace_back(is_forward(pass), ChunkPlace{static_cast<std::int32_t>(stage), pass.chunk}, pass.micro_batch);
    if (is_forward(pass)) {
      ++s.live;
    } else {
      s.weights.push_back(pass);
    }
    --left_;
  }

  const Placement& placement_;
  std::int64_t memory_;
  bool pulls_;
  std::vector<StageState> stages_;
  std::vector<ActionList> lists_;
  std::set<Done> done_;
  std::vector<Done> ended_;  // in the present unit
  std::size_t left_ = 0;
};

}  // namespace

std::vector<ActionList> v_schedule(Schedule schedule, std::int32_t stages, std::int64_t micro_batches) {
  const Placement placement{Arrangement::kV, stages, 2};
  const Block block = densest_block(stages, offsets_of(schedule));
  return Filler{block, placement, micro_batches, schedule == Schedule::kZbV}.run();
}

}  // namespace stepcast::parallel
