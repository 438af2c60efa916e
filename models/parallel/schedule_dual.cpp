// DualPipe and DualPipe-V, restated from DeepSeek's description of their eight phases (DeepSeek-AI 2024,
// DeepSeek-V3 section 3.2.1; the DualPipe repository names the phases). For a stage with r stages before
// it on its half and h behind it up to the middle (DualPipe) or the turn (DualPipe-V):
//   1  2h     F of the near direction
//   2  r+1    F near, F far in turn
//   3  h      B, W, F of the far direction
//   4  rest   F near beside B far, then F far beside B near
//   5  h      B far, then F far beside B near
//   6  r+1    B far, B near; in the second half the weight gradients are put off
//   7  h      a put-off W, then B near
//   8  r+1    the W that are left
// `near` is chunk 0 on the first half of the stages and chunk 1 on the second; in DualPipe-V always
// chunk 0. Where near and far first meet (the middle, the turn), the first pair is not overlapped.
#include <deque>

#include "models/parallel/schedule.hpp"
#include "sim/base/check.hpp"

namespace stepcast::parallel {
namespace {

class EightPhases {
 public:
  // `micro_batches`: of each chunk; chunk c's are numbered from `first[c]`.
  EightPhases(std::uint8_t near, std::array<std::int64_t, 2> first) : near_{near}, first_{first} {}

  ActionList write(std::int64_t before, std::int64_t behind, std::int64_t main, bool meets) && {
    const std::uint8_t far = 1 - near_;
    for (std::int64_t k = 0; k < 2 * behind; ++k) forward(near_);
    for (std::int64_t k = 0; k < before + 1; ++k) {
      forward(near_);
      forward(far);
    }
    for (std::int64_t k = 0; k < behind; ++k) {
      backward(far, true);
      weight();
      forward(far);
    }
    for (std::int64_t k = 0; k < main; ++k) {
      if (k == 0 && meets) {
        forward(near_);
        backward(far, false);
      } else {
        both(near_, far);
      }
      both(far, near_);
    }
    for (std::int64_t k = 0; k < behind; ++k) {
      backward(far, false);
      both(far, near_);
    }
    bool put_off = false;
    for (std::int64_t k = 0; k < before + 1; ++k) {
      const bool half_way = k == (before + 1) / 2;
      if (half_way && before % 2 == 1) put_off = true;
      backward(far, put_off);
      if (half_way && before % 2 == 0) put_off = true;
      backward(near_, put_off);
    }
    for (std::int64_t k = 0; k < behind; ++k) {
      weight();
      backward(near_, true);
    }
    while (!waiting_.empty()) weight();
    return std::move(actions_);
  }

 private:
  std::uint16_t take(std::array<std::int64_t, 2>& count, std::uint8_t chunk) {
    return static_cast<std::uint16_t>(first_[chunk] + count[chunk]++);
  }
  void forward(std::uint8_t chunk) { actions_.push_back({ActionKind::kForward, chunk, take(forwards_, chunk)}); }
  void backward(std::uint8_t chunk, bool put_off) {
    const std::uint16_t k = take(backwards_, chunk);
    actions_.push_back({put_off ? ActionKind::kBackwardInput : ActionKind::kBackward, chunk, k});
    if (put_off) waiting_.push_back({ActionKind::kBackwardWeight, chunk, k});
  }
  void weight() {
    SIM_CHECK(!waiting_.empty());
    actions_.push_back(waiting_.front());
    waiting_.pop_front();
  }
  void both(std::uint8_t forward_chunk, std::uint8_t backward_chunk) {
    const std::uint16_t f = take(forwards_, forward_chunk);
    const std::uint16_t b = take(backwards_, backward_chunk);
    actions_.push_back({ActionKind::kOverlapped, forward_chunk, f, backward_chunk, b});
  }

  std::uint8_t near_;
  std::array<std::int64_t, 2> first_;
  std::array<std::int64_t, 2> forwards_{};
  std::array<std::int64_t, 2> backwards_{};
  std::deque<Action> waiting_;
  ActionList actions_;
};

}  // namespace

ActionList dualpipe_actions(std::int32_t stage, std::int32_t stages, std::int64_t micro_batches) {
  SIM_CHECK(stages % 2 == 0 && micro_batches % 2 == 0 && micro_batches >= 2 * stages, stages, micro_batches);
  const std::int64_t half = stages / 2;
  const bool second_half = stage >= half;
  const std::int64_t before = second_half ? stages - 1 - stage : stage;
  const std::int64_t behind = half - 1 - before;
  return EightPhases{static_cast<std::uint8_t>(second_half ? 1 : 0), {0, micro_batches / 2}}.write(
      before, behind, micro_batches / 2 - stages + before + 1, behind == 0);
}

ActionList dualpipe_v_actions(std::int32_t stage, std::int32_t stages, std::int64_t micro_batches) {
  SIM_CHECK(micro_batches >= 2 * stages, stages, micro_batches);
  const std::int64_t behind = stages - 1 - stage;
  return EightPhases{0, {0, 0}}.write(stage, behind, micro_batches - 2 * stages + stage + 1, behind == 0);
}

}  // namespace stepcast::parallel
