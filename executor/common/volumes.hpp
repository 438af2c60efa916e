// executor/common/volumes.hpp — what each pair of an all-to-all exchanges, from the plan's tables (sim/plan/volumes.hpp).
#pragma once

#include <cstddef>

#include "executor/common/part.hpp"
#include "sim/plan/plan.hpp"

namespace stepcast::executor {

// Bytes that slot `from` of `slots` sends slot `to`.
std::size_t pair_bytes(const plan::Collective& collective, const plan::Plan& plan, std::size_t slots, std::size_t from, std::size_t to);

// Where `size` bytes go in a buffer of `room` that is filled up to `at`. Unequal parts may add up to more than the buffer, which is as large as
// the average: they start again from its begin then, and a single one is cut to it. Random data allow that.
Part place_in(std::size_t room, std::size_t at, std::size_t size);

}  // namespace stepcast::executor
