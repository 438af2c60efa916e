// sim/plan/check_parts.hpp — what the parts of check() share. Not for other folders.
#pragma once

#include <utility>

#include "sim/plan/check.hpp"

namespace stepcast::plan::check_parts {

// "send 'pp.forward', layer 3, micro-batch 0"; safe on ids that are out of range.
std::string describe(const Program& program, const Instruction& instruction);

class Findings {
 public:
  explicit Findings(const Plan& plan) : plan_{plan} {}

  static constexpr std::size_t kLimit = 100;
  [[nodiscard]] bool empty() const { return errors_.empty(); }
  [[nodiscard]] bool full() const { return errors_.size() >= kLimit; }
  [[nodiscard]] const Plan& plan() const { return plan_; }

  void add(PlanFault fault, std::string problem, std::string hint);
  void add(PlanFault fault, std::int32_t stage, std::string problem, std::string hint);
  PlanError& at(PlanFault fault, std::int32_t stage, std::size_t instruction, std::string problem, std::string hint);
  std::vector<PlanError> take() && { return std::move(errors_); }

 private:
  const Plan& plan_;
  std::vector<PlanError> errors_;
  PlanError overflow_;  // takes what is beyond the limit
};

inline const Program& program_of(const Plan& plan, std::int32_t stage) {
  return plan.programs[plan.program_of_stage[static_cast<std::size_t>(stage)].index()];
}

inline bool spans_stages(const Group& group) {
  for (const Axis axis : group.axes) {
    if (axis == Axis::kPipeline) return true;
  }
  return false;
}

// The pipeline stages that take part in a group.
std::vector<std::int32_t> stages_of(const Plan& plan, const Group& group);

bool tables_sound(Findings& findings);  // false: the programs cannot be looked at
void check_programs(Findings& findings);
void check_messages(Findings& findings);
void check_collectives(Findings& findings);
void check_progress(Findings& findings);

}  // namespace stepcast::plan::check_parts
