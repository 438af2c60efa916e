// executor/common/shrink.hpp — a plan of a big model made small enough for few or small devices: the same instructions, groups and
// order, smaller numbers. What it measures is no longer the plan's time; records say so.
#pragma once

#include "sim/plan/plan.hpp"

namespace stepcast::executor {

// Beyond it nothing of any model is left, and its cube is far from the range of integers.
inline constexpr std::int64_t kMostShrink = 4096;

// Dimensions of products and attention, heads apart, divided by `factor`; bytes by its square, operations by its cube; nothing below 1.
// Requires: 1 <= factor <= kMostShrink.
plan::Plan shrink(plan::Plan plan, std::int64_t factor);

}  // namespace stepcast::executor
