#include "models/parallel/planner.hpp"

#include "models/parallel/groups.hpp"
#include "models/parallel/messages.hpp"
#include "models/parallel/stage_model.hpp"
#include "models/parallel/stage_program.hpp"
#include "sim/base/check.hpp"

namespace stepcast::parallel {
namespace {

plan::Work work_of(const workload::ModelShape& shape, const Strategy& strategy) {
  plan::Work work;
  work.samples = strategy.global_batch;
  work.tokens = strategy.global_batch * strategy.sequence;
  work.model_flops = static_cast<double>(strategy.global_batch) *
                     model_flops_per_sequence(shape, strategy.sequence, strategy.flops_convention, strategy.adapters);
  work.flops_convention = name_of(strategy.flops_convention);
  return work;
}

}  // namespace

plan::Plan make_plan(const workload::ModelShape& shape, const Strategy& strategy) {
  for (const StrategyError& error : check(shape, strategy)) SIM_CHECK(false, error.path, error.problem);
  plan::Plan plan;
  plan.name = shape.name;
  plan.degrees[plan::Axis::kTensor] = strategy.tp;
  plan.degrees[plan::Axis::kPipeline] = strategy.pp;
  plan.degrees[plan::Axis::kData] = strategy.dp;
  plan.degrees[plan::Axis::kContext] = strategy.cp;
  plan.order = strategy.order;
  plan.work = work_of(shape, strategy);

  const ModelBlocks blocks = make_blocks(shape, strategy);
  const Groups groups = make_groups(strategy, shape, plan);
  const std::vector<ActionList> lists = schedule_of(strategy);
  const Placement placement = placement_of(strategy);
  const MessagePlan messages = plan_messages(lists, placement, play(lists, placement), is_plain(strategy));
  for (const StageModel& model : split_stages(blocks, strategy)) {
    plan.program_of_stage.emplace_back(plan.programs.size());
    plan.programs.push_back(
        make_stage_program({model, strategy, groups, lists[static_cast<std::size_t>(model.stage)], messages}));
  }
  return plan;
}

}  // namespace stepcast::parallel
