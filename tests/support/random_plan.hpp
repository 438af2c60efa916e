// tests/support/random_plan.hpp — small valid plans of every shape: pipelines of 1 to 4 stages,
// GPipe or 1F1B, several streams, copies, a tied embedding. Same seed, same plan.
#pragma once

#include <cstdint>

#include "sim/plan/plan.hpp"

namespace stepcast::test {

plan::Plan random_plan(std::uint64_t seed);

}  // namespace stepcast::test
