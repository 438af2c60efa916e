// models/parallel/action.hpp — what a pipeline stage does next: one pass of one micro-batch through one
// of its chunks, or the two passes that DualPipe runs as one.
//
// Terms    chunk   a run of layers that a stage holds, numbered 0 .. v-1 on each stage
//          B       backward pass; where the weight gradients wait for an action of their own, B is the
//                  gradient of the inputs alone and W that of the weights (Qi et al. 2023)
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace stepcast::parallel {

enum class ActionKind : std::uint8_t {
  kForward,
  kBackward,        // both gradients
  kBackwardInput,   // what the stage before waits for
  kBackwardWeight,  // may come later
  kOverlapped,      // forward of (chunk, micro_batch) beside backward of (other_chunk, other_micro_batch)
};

struct Action {
  ActionKind kind = ActionKind::kForward;
  std::uint8_t chunk = 0;
  std::uint16_t micro_batch = 0;
  std::uint8_t other_chunk = 0;
  std::uint16_t other_micro_batch = 0;
  friend auto operator<=>(const Action&, const Action&) = default;
};

using ActionList = std::vector<Action>;  // of one stage, in the order in which it runs them

// One pass of one micro-batch; never kOverlapped.
struct Pass {
  ActionKind kind = ActionKind::kForward;
  std::uint8_t chunk = 0;
  std::uint16_t micro_batch = 0;
  friend auto operator<=>(const Pass&, const Pass&) = default;
};

class Passes {
 public:
  explicit constexpr Passes(const Action& a) {
    if (a.kind == ActionKind::kOverlapped) {
      list_ = {Pass{ActionKind::kForward, a.chunk, a.micro_batch},
               Pass{ActionKind::kBackward, a.other_chunk, a.other_micro_batch}};
      count_ = 2;
    } else {
      list_[0] = {a.kind, a.chunk, a.micro_batch};
    }
  }
  [[nodiscard]] constexpr const Pass* begin() const { return list_.data(); }
  [[nodiscard]] constexpr const Pass* end() const { return list_.data() + count_; }

 private:
  std::array<Pass, 2> list_{};
  std::size_t count_ = 1;
};

constexpr bool is_forward(const Pass& p) { return p.kind == ActionKind::kForward; }
// The pass makes the gradient that the stage before waits for.
constexpr bool gives_input_gradient(const Pass& p) {
  return p.kind == ActionKind::kBackward || p.kind == ActionKind::kBackwardInput;
}
constexpr bool gives_weight_gradient(const Pass& p) {
  return p.kind == ActionKind::kBackward || p.kind == ActionKind::kBackwardWeight;
}

}  // namespace stepcast::parallel
