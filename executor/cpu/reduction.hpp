// executor/cpu/reduction.hpp — sums and maxima of buffers, element by element.
#pragma once

#include <cstddef>
#include <span>

#include "executor/common/cpu_limits.hpp"
#include "executor/common/payload.hpp"
#include "sim/plan/kernel.hpp"

namespace stepcast::executor {

// into = into + from, or the larger of both. 16-bit formats are added in fp32 and rounded. Bytes behind the last whole element stay. Requires: equal sizes,
// can_add(dtype).
void reduce_into(Reduction how, plan::Dtype dtype, std::span<std::byte> into, std::span<const std::byte> from);

}  // namespace stepcast::executor
