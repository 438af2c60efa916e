#include "sim/plan/check.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "sim/plan/check_parts.hpp"

namespace stepcast::plan {
namespace check_parts {

std::string describe(const Program& program, const Instruction& instruction) {
  std::string text = opcode_of(instruction.body);
  if (instruction.label.index() < program.labels.size()) text += " '" + program.labels[instruction.label.index()] + "'";
  if (instruction.layer) text += fmt::format(", layer {}", *instruction.layer);
  if (instruction.micro_batch) text += fmt::format(", micro-batch {}", *instruction.micro_batch);
  return text;
}

void Findings::add(PlanFault fault, std::string problem, std::string hint) {
  if (full()) return;
  errors_.push_back({.fault = fault, .problem = std::move(problem), .hint = std::move(hint)});
}

void Findings::add(PlanFault fault, std::int32_t stage, std::string problem, std::string hint) {
  if (full()) return;
  errors_.push_back({.fault = fault, .stage = stage, .problem = std::move(problem), .hint = std::move(hint)});
}

PlanError& Findings::at(PlanFault fault, std::int32_t stage, std::size_t instruction, std::string problem,
                        std::string hint) {
  if (full()) return overflow_;
  PerAxis column{0};
  column[Axis::kPipeline] = stage;
  const Program& program = program_of(plan_, stage);
  errors_.push_back({.fault = fault,
                     .worker = plan_.rank(column),
                     .stage = stage,
                     .instruction = instruction,
                     .source = describe(program, program.instructions[instruction]),
                     .problem = std::move(problem),
                     .hint = std::move(hint)});
  return errors_.back();
}

std::vector<std::int32_t> stages_of(const Plan& plan, const Group& group) {
  if (!group.stages.empty()) return group.stages;
  std::vector<std::int32_t> all;
  for (std::int32_t s = 0; s < plan.degrees[Axis::kPipeline]; ++s) all.push_back(s);
  return all;
}

namespace {

bool degrees_sound(Findings& f) {
  const Plan& plan = f.plan();
  const std::set<Axis> distinct(plan.order.begin(), plan.order.end());
  if (distinct.size() != static_cast<std::size_t>(kAxisCount)) {
    f.add(PlanFault::kDegrees, "the axis order does not name each axis once", "list tp, cp, ep, dp and pp, fastest first");
    return false;
  }
  std::int64_t size = 1;
  for (const Axis axis : plan.order) {
    if (plan.degrees[axis] < 1) {
      f.add(PlanFault::kDegrees, fmt::format("degree {} is {}", name_of(axis), plan.degrees[axis]), "a degree is 1 or more");
      return false;
    }
    size *= plan.degrees[axis];
    if (size > INT32_MAX) {
      f.add(PlanFault::kDegrees, "the product of the degrees is beyond 2147483647 workers", "lower a degree");
      return false;
    }
  }
  const auto stages = static_cast<std::size_t>(plan.degrees[Axis::kPipeline]);
  if (plan.program_of_stage.size() != stages) {
    f.add(PlanFault::kDegrees,
          fmt::format("{} stages have a program, the pipeline has {}", plan.program_of_stage.size(), stages),
          "name one program for each stage");
    return false;
  }
  for (std::size_t s = 0; s < stages; ++s) {
    if (plan.program_of_stage[s].index() >= plan.programs.size()) {
      f.add(PlanFault::kDegrees, static_cast<std::int32_t>(s),
            fmt::format("program {} does not exist", plan.program_of_stage[s].value()),
            fmt::format("the plan has programs 0 to {}", plan.programs.size() - 1));
      return false;
    }
  }
  return true;
}

bool groups_sound(Findings& f) {
  const Plan& plan = f.plan();
  bool sound = true;
  const auto refuse = [&](const Group& group, std::string problem, std::string hint) {
    f.add(PlanFault::kGroup, fmt::format("group '{}': {}", group.name, problem), std::move(hint));
    sound = false;
  };
  std::set<std::string> names;
  for (const Group& group : plan.groups) {
    if (!names.insert(group.name).second) refuse(group, "the name is taken by another group", "rename one of them");
    if (std::adjacent_find(group.axes.begin(), group.axes.end(), std::greater_equal<>{}) != group.axes.end()) {
      refuse(group, "its axes are not sorted and distinct", "list them in the order tp, cp, ep, dp, pp");
    }
    if (std::adjacent_find(group.stages.begin(), group.stages.end(), std::greater_equal<>{}) != group.stages.end()) {
      refuse(group, "its stages are not ascending and distinct", "sort them");
    }
    const auto cuts = [](std::int64_t block, std::int64_t whole) { return block >= 1 && whole % block == 0; };
    if (group.split && !cuts(group.split->block, plan.degrees[group.split->axis])) {
      refuse(group, fmt::format("blocks of {} do not cut the {} {} ranks", group.split->block,
                                plan.degrees[group.split->axis], name_of(group.split->axis)), "take a divisor");
    }
    if (group.slice) {
      std::int64_t whole = group.stages.empty() ? 1 : static_cast<std::int64_t>(group.stages.size());
      for (const Axis axis : group.axes)
        if (axis != Axis::kPipeline || group.stages.empty()) whole *= plan.degrees[axis];
      if (group.slice->stride < 1 || !cuts(std::int64_t{group.slice->stride} * group.slice->size, whole)) {
        refuse(group, fmt::format("{} ranks {} apart do not cut its {} ranks", group.slice->size, group.slice->stride, whole),
               "stride x size must divide them");
      }
    }
    for (const std::int32_t stage : group.stages) {
      if (stage < 0 || stage >= plan.degrees[Axis::kPipeline]) {
        refuse(group, fmt::format("stage {} does not exist", stage),
               fmt::format("the pipeline has stages 0 to {}", plan.degrees[Axis::kPipeline] - 1));
      }
    }
  }
  return sound;
}

bool volumes_sound(Findings& f) {
  bool sound = true;
  for (const VolumeTable& table : f.plan().volumes) {
    double sum = 0.0;
    const bool usable = std::all_of(table.values.begin(), table.values.end(), [&](double value) {
      sum += value;
      return std::isfinite(value) && value >= 0.0;
    });
    if (usable && sum > 0.0 && std::isfinite(sum)) continue;
    f.add(PlanFault::kVolumes, fmt::format("volumes '{}': {}", table.name, usable ? "nothing is sent" : "a value is negative or no number"),
          "values are 0 or more, one of them above 0");
    sound = false;
  }
  return sound;
}

}  // namespace

bool tables_sound(Findings& findings) { return degrees_sound(findings) && groups_sound(findings) && volumes_sound(findings); }

}  // namespace check_parts

const char* name_of(PlanFault fault) {
  static constexpr std::array<const char*, 20> kNames{
      "degrees",         "group",           "id_out_of_range",  "stream",       "size",
      "kernel",          "peer",            "volumes",          "not_in_group",     "alloc_twice",  "free_twice",
      "free_unallocated", "record_twice",   "wait_unrecorded",  "wait_before_record", "message_unmatched",
      "message_size",    "message_order",   "collective_mismatch", "deadlock"};
  return kNames.at(static_cast<std::size_t>(fault));
}

std::vector<PlanError> check(const Plan& plan) {
  using namespace check_parts;
  Findings findings{plan};
  if (tables_sound(findings)) {
    check_programs(findings);
    if (findings.empty()) {
      check_messages(findings);
      check_collectives(findings);
    }
    if (findings.empty()) check_progress(findings);
  }
  std::vector<PlanError> errors = std::move(findings).take();
  std::stable_sort(errors.begin(), errors.end(), [](const PlanError& a, const PlanError& b) {
    return std::tie(a.stage, a.instruction) < std::tie(b.stage, b.instruction);
  });
  return errors;
}

namespace {

std::string place(const PlanError& error) {
  std::string text;
  if (error.worker) {
    text = fmt::format("worker {} (stage {})", error.worker->value(), *error.stage);
  } else if (error.stage) {
    text = fmt::format("stage {}", *error.stage);
  }
  if (error.instruction) text += fmt::format(", instruction {} ({})", *error.instruction, error.source);
  return text;
}

std::string with_details(const PlanError& error) {
  std::string text = error.problem;
  for (const std::string& detail : error.details) text += "\n    " + detail;
  return text;
}

}  // namespace

std::string to_text(const PlanError& error) {
  const std::string where = place(error);
  std::string text = (where.empty() ? std::string{"plan"} : where) + ": " + with_details(error);
  if (!error.hint.empty()) text += "\n  hint: " + error.hint;
  return text;
}

void require_valid(const Plan& plan, const std::string& file) {
  std::vector<Diagnostic> diagnostics;
  for (const PlanError& error : check(plan)) {
    diagnostics.push_back(
        {.where = {file, 0, 0}, .path = place(error), .problem = with_details(error), .hint = error.hint});
  }
  if (!diagnostics.empty()) throw UserError(std::move(diagnostics));
}

}  // namespace stepcast::plan
