// sim/plan/print.hpp — a plan as text for people: a summary of each program and its instruction
// list, grouped by stage and micro-batch; and the differences between two plans.
#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "sim/plan/plan.hpp"

namespace stepcast::plan {

struct PrintOptions {
  std::optional<ProgramId> program;  // empty: all
  bool instructions = true;          // false: summaries only
  std::size_t first = 0;             // instruction range
  std::size_t count = std::numeric_limits<std::size_t>::max();
};

// Requires: a plan that the file reader or check() accepts.
std::string print_plan(const Plan& plan, const PrintOptions& options = {});

// What one instruction does, without its operator's name: "gemm 8192x6144x4096 bf16, 412 GFLOP, ...".
std::string describe_work(const Plan& plan, const Program& program, const Instruction& instruction);

// Sentences on what differs, in file order; empty when nothing differs. Instructions are compared by
// meaning: another numbering of labels, kernels, buffers or events is no difference. `limit`
// differences, then "and N more". Cost O(instructions), and some 10^4 comparisons a difference.
std::vector<std::string> diff(const Plan& before, const Plan& after, std::size_t limit = 20);

}  // namespace stepcast::plan
