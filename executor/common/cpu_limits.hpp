// executor/common/cpu_limits.hpp — what the CPU backend does not play, told before anything is started.
#pragma once

#include <string>

#include "sim/plan/plan.hpp"

namespace stepcast::executor {

// Not fp8: NCCL does not sum it either.
constexpr bool can_add(plan::Dtype dtype) { return dtype != plan::Dtype::kFp8; }

// Throws UserError naming `file` where a program computes in other formats than fp32 or sums what cannot be.
void require_cpu_can_play(const plan::Plan& plan, const std::string& file);

}  // namespace stepcast::executor
