#include "models/parallel/stage_program.hpp"

#include <map>
#include <memory>

#include "models/parallel/compiled_block.hpp"
#include "models/parallel/data_parallel.hpp"
#include "models/parallel/emitter.hpp"
#include "models/parallel/optimizer_step.hpp"
#include "models/parallel/pipeline_port.hpp"
#include "models/parallel/schedule.hpp"
#include "models/parallel/state.hpp"

namespace stepcast::parallel {
namespace {

using plan::Category;
using plan::Stage;

class StageWriter {
 public:
  StageWriter(const StageModel& model, const Strategy& strategy, const Groups& groups)
      : model_{model},
        strategy_{strategy},
        groups_{groups},
        actions_{stage_actions(strategy.schedule, model.stage, model.stages, micro_batches(strategy))},
        emitter_{"stage " + std::to_string(model.stage) + " of " + std::to_string(model.stages)},
        port_{model, emitter_},
        data_{make_data_parallel({model, strategy, groups, actions_, emitter_})} {
    for (const StageBlock& block : model.blocks) {
      if (!compiled_.contains(block.block))
        compiled_.emplace(block.block, compile(*block.block, groups.tensor, emitter_.builder));
    }
    saved_.resize(model.blocks.size() * static_cast<std::size_t>(micro_batches(strategy)));
  }

  plan::Program write() && {
    allocate_states();
    zero_gradients(model_, strategy_, emitter_);
    data_->begin_step();
    port_.post_receive(actions_.front(), true);
    for (std::size_t i = 0; i < actions_.size(); ++i) {
      data_->begin_action(i);
      if (actions_[i].direction == Direction::kForward) {
        forward(actions_[i]);
      } else {
        backward(actions_[i]);
      }
      port_.send(actions_[i]);
      if (i + 1 < actions_.size()) port_.post_receive(actions_[i + 1], false);
    }
    emitter_.builder.context({Stage::kGradientSync, {}, {}});
    port_.end_step();
    data_->finish_gradients();
    sum_partial_gradients();
    emitter_.builder.context({Stage::kOptimizer, {}, {}});
    update_parameters(model_, strategy_, groups_, emitter_);
    data_->end_step();
    return std::move(emitter_.builder).finish();
  }

 private:
  void allocate_states() {
    emitter_.builder.context({Stage::kInput, {}, {}});
    const PersistentState state = persistent_state(model_, strategy_);
    emitter_.builder.alloc(emitter_.compute, "parameters", state.parameters, Category::kParameters);
    emitter_.builder.alloc(emitter_.compute, "gradients", state.gradients, Category::kGradients);
    emitter_.builder.alloc(emitter_.compute, "optimizer", state.optimizer, Category::kOptimizer);
  }

  void forward(const Action& action) {
    emitter_.builder.context({Stage::kForward, {}, action.micro_batch});
    port_.await_receive();
    for (std::size_t i = 0; i < model_.blocks.size(); ++i) {
      const StageBlock& block = model_.blocks[i];
      const CompiledBlock& code = compiled_.at(block.block);
      emitter_.builder.context({Stage::kForward, block.layer, action.micro_batch});
      data_->before_forward(i);
      if (i == 0) port_.free_received();  // handed over to what the block saves
      saved(i, action) = emitter_.acquire(emitter_.compute, code.saved_label, code.saved, Category::kActivations);
      const auto workspace = emitter_.acquire(emitter_.compute, code.workspace_label, block.block->forward_workspace,
                                              Category::kWorkspace);
      run(code.forward, [](std::size_t) {}, [](std::size_t) {});
      emitter_.release(emitter_.compute, workspace);
      data_->after_forward(i);
    }
  }

  void backward(const Action& action) {
    emitter_.builder.context({Stage::kBackward, {}, action.micro_batch});
    port_.await_receive();
    for (std::size_t i = model_.blocks.size(); i-- > 0;) {
      const StageBlock& block = model_.blocks[i];
      const CompiledBlock& code = compiled_.at(block.block);
      emitter_.builder.context({Stage::kBackward, block.layer, action.micro_batch});
      data_->before_backward(i);
      std::optional<plan::BufferId> recomputed;
      if (!code.recompute.empty()) {
        const StageScope scope{emitter_, Stage::kRecompute};
        recomputed = emitter_.acquire(emitter_.compute, code.recompute_label, block.block->recompute_peak,
                                      Category::kActivations);
        run(code.recompute, [](std::size_t) {}, [](std::size_t) {});
      }
      const auto workspace = emitter_.acquire(emitter_.compute, code.workspace_label, block.block->backward_workspace,
                                              Category::kWorkspace);
      run(
          code.backward, [&](std::size_t step) { data_->before_backward_step(i, step); },
          [&](std::size_t step) { data_->after_backward_step(i, step); });
      emitter_.release(emitter_.compute, workspace);
      emitter_.release(emitter_.compute, recomputed);
      emitter_.release(emitter_.compute, saved(i, action));
      if (i + 1 == model_.blocks.size()) port_.free_received();
      data_->after_backward(i);
    }
  }

  template <class Before, class After>
  void run(const std::vector<CompiledStep>& steps, Before before, After after) {
    struct Pending {
      std::size_t needed_at;
      plan::EventId done;
    };
    std::vector<Pending> pending;
    plan::ProgramBuilder& builder = emitter_.builder;
    const auto wait_until = [&](std::size_t step) {
      std::erase_if(pending, [&](const Pending& p) {
        if (p.needed_at > step) return false;
        builder.wait(emitter_.compute, p.done);
        return true;
      });
    };
    for (std::size_t i = 0; i < steps.size(); ++i) {
      wait_until(i);
      before(i);
      const CompiledStep& step = steps[i];
      if (const auto* kernel = std::get_if<plan::KernelId>(&step.body)) {
        builder.compute(emitter_.compute, step.label, *kernel);
      } else if (step.overlap_steps == 0) {
        builder.collective(emitter_.compute, step.label, std::get<plan::Collective>(step.body));
      } else {
        const plan::StreamId stream = builder.stream(plan::StreamKind::kCommunication, "tp");
        builder.order(emitter_.compute, stream);
        builder.collective(stream, step.label, std::get<plan::Collective>(step.body));
        pending.push_back({i + step.overlap_steps + 1, builder.record(stream)});
      }
      after(i);
    }
    wait_until(SIZE_MAX);
  }

  // ZeRO-2 and 3 hold a shard of each gradient by now.
  void sum_partial_gradients() {
    const std::int64_t parts = strategy_.zero >= 2 ? shard_size(strategy_) : 1;
    const auto all_reduce = [&](const char* label, plan::GroupId group, std::int64_t elements, plan::Purpose purpose) {
      emitter_.builder.collective(emitter_.compute, label,
                                  {plan::CollectiveKind::kAllReduce, group,
                                   gradient_bytes(strategy_, ceil_div(elements, parts)), strategy_.gradient_dtype,
                                   purpose});
    };
    if (model_.partial_gradients > 0)
      all_reduce("gradient.partial", *groups_.tensor, model_.partial_gradients, plan::Purpose::kTensor);
    if (model_.tied_gradients > 0)
      all_reduce("gradient.tied_embedding", *groups_.embedding, model_.tied_gradients, plan::Purpose::kPipeline);
  }

  std::optional<plan::BufferId>& saved(std::size_t block, const Action& action) {
    return saved_[action.micro_batch * model_.blocks.size() + block];
  }

  const StageModel& model_;
  const Strategy& strategy_;
  const Groups& groups_;
  std::vector<Action> actions_;
  Emitter emitter_;
  PipelinePort port_;
  std::unique_ptr<DataParallel> data_;
  std::map<const workload::Block*, CompiledBlock> compiled_;  // looked up only, never walked
  std::vector<std::optional<plan::BufferId>> saved_;          // by micro-batch and block
};

}  // namespace

plan::Program make_stage_program(const StageModel& model, const Strategy& strategy, const Groups& groups) {
  return StageWriter{model, strategy, groups}.write();
}

}  // namespace stepcast::parallel
