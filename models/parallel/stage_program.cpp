#include "models/parallel/stage_program.hpp"

#include <algorithm>
#include <map>
#include <memory>

#include "models/parallel/compiled_block.hpp"
#include "models/parallel/data_parallel.hpp"
#include "models/parallel/emitter.hpp"
#include "models/parallel/offload.hpp"
#include "models/parallel/optimizer_step.hpp"
#include "models/parallel/pass_lane.hpp"
#include "models/parallel/pipeline_port.hpp"
#include "models/parallel/state.hpp"

namespace stepcast::parallel {
namespace {

using plan::Category;
using plan::Stage;

class StageWriter {
 public:
  explicit StageWriter(const StageProgramInputs& inputs)
      : model_{inputs.model},
        strategy_{inputs.strategy},
        groups_{inputs.groups},
        actions_{inputs.actions},
        emitter_{"stage " + std::to_string(model_.stage) + " of " + std::to_string(model_.placement.stages)},
        port_{model_, inputs.messages, emitter_},
        offload_{model_, strategy_, emitter_},
        data_{make_data_parallel({model_, strategy_, groups_, actions_, emitter_})} {
    for (const StageBlock& block : model_.blocks) {
      if (!compiled_.contains(block.block))
        compiled_.emplace(block.block, compile(*block.block, groups_, emitter_.builder));
    }
    saved_.resize(model_.blocks.size() * static_cast<std::size_t>(micro_batches(strategy_)));
    kept_.resize(saved_.size());
    recomputed_.resize(saved_.size());
  }

  plan::Program write() && {
    allocate_states();
    zero_gradients(model_, strategy_, emitter_);
    data_->begin_step();
    port_.begin_step();
    for (std::size_t i = 0; i < actions_.size(); ++i) {
      data_->begin_action(i);
      port_.begin_action(i);
      write_passes(actions_[i]);
      if (strategy_.host_waits == HostWaits::kPasses) emitter_.host_waits_for(emitter_.compute);
      const bool sent = port_.end_action(i, actions_[i]);
      if (sent && strategy_.host_waits == HostWaits::kMessages) emitter_.host_waits_for(emitter_.compute);
    }
    emitter_.builder.context({Stage::kGradientSync, {}, {}});
    port_.end_step();
    data_->finish_gradients();
    sum_partial_gradients();
    emitter_.builder.context({Stage::kOptimizer, {}, {}});
    update_parameters(model_, strategy_, groups_, emitter_, offload_);
    data_->end_step();
    return std::move(emitter_.builder).finish();
  }

 private:
  void allocate_states() {
    emitter_.builder.context({Stage::kInput, {}, {}});
    const PersistentState state = persistent_state(model_, strategy_);
    // A stage without adapters has neither gradients nor an optimizer.
    emitter_.acquire(emitter_.compute, "parameters", state.parameters, Category::kParameters);
    const Bytes gradients = strategy_.gradients_in_parameters ? Bytes{0} : state.gradients;
    emitter_.acquire(emitter_.compute, "gradients", gradients, Category::kGradients);
    emitter_.acquire(emitter_.compute, "optimizer", state.optimizer, Category::kOptimizer);
    emitter_.acquire(emitter_.compute, "pipeline.receive", receive_buffers(), Category::kCommunication);
    emitter_.acquire(emitter_.compute, "gradient.buckets", state.buckets, Category::kCommunication);
    emitter_.acquire(emitter_.compute, "gradient.placeholders", state.placeholders, Category::kWorkspace);
  }

  // One for each micro-batch and neighbour, less those that hold a first block's saved input.
  [[nodiscard]] Bytes receive_buffers() const {
    if (!strategy_.receives_ahead || model_.placement.stages == 1) return Bytes{0};
    std::vector<std::int64_t> in_flight(model_.chunks.size(), 0);
    std::vector<std::int64_t> most(model_.chunks.size(), 0);
    for (const Action& action : actions_) {
      for (const Pass& pass : Passes{action}) {
        if (pass.kind == ActionKind::kBackwardWeight) continue;
        in_flight[pass.chunk] += is_forward(pass) ? 1 : -1;
        most[pass.chunk] = std::max(most[pass.chunk], in_flight[pass.chunk]);
      }
    }
    std::int64_t buffers = 0;
    for (std::size_t chunk = 0; chunk < model_.chunks.size(); ++chunk) {
      const ChunkPlace place{model_.stage, static_cast<std::uint8_t>(chunk)};
      if (!model_.placement.first(place)) buffers += micro_batches(strategy_) - most[chunk];
      if (!model_.placement.last(place)) buffers += micro_batches(strategy_);
    }
    return model_.boundary * buffers;
  }

  void await(const Pass& pass) {
    const bool for_messages = strategy_.host_waits == HostWaits::kMessages || strategy_.host_waits == HostWaits::kPasses || strategy_.host_waits == HostWaits::kKernels;
    if (port_.await(pass) && for_messages) emitter_.host_waits_for(emitter_.compute);
  }

  void write_passes(const Action& action) {
    const bool beside = action.kind == ActionKind::kOverlapped;
    const bool host_waits = strategy_.host_waits == HostWaits::kKernels;
    PassLane first{emitter_, beside, host_waits};
    PassLane second{emitter_, beside, host_waits};
    PassLane* lane = &first;
    for (const Pass& pass : Passes{action}) {
      add_pass(pass, *lane);
      lane = &second;
    }
    while (!first.done() || !second.done()) {
      first.write_some();
      second.write_some();
    }
  }

  void add_pass(const Pass& pass, PassLane& lane) {
    switch (pass.kind) {
      case ActionKind::kForward: return forward(pass, lane);
      case ActionKind::kBackward: return backward(pass, true, lane);
      case ActionKind::kBackwardInput: return backward(pass, false, lane);
      case ActionKind::kBackwardWeight: return weights(pass, lane);
      case ActionKind::kOverlapped: return;  // has been taken apart
    }
  }

  void forward(const Pass& pass, PassLane& lane) {
    const StageChunk chunk = model_.chunks[pass.chunk];
    lane.add({Stage::kForward, {}, pass.micro_batch}, [=, this] { await(pass); });
    for (std::size_t i = chunk.first; i < chunk.first + chunk.count; ++i) {
      const StageBlock& block = model_.blocks[i];
      const CompiledBlock& code = compiled_.at(block.block);
      const plan::Context context{Stage::kForward, block.layer, pass.micro_batch};
      const auto workspace = std::make_shared<std::optional<plan::BufferId>>();
      lane.add(context, [=, this, &code, &block] {
        data_->before_forward(i);
        if (i == chunk.first) port_.free_received(pass);  // handed over to what the block saves
        // Before what is saved, which would otherwise settle in the place that the last workspace left, and cut it up.
        *workspace = emitter_.acquire(emitter_.compute, code.workspace_label, block.block->forward_workspace,
                                      Category::kWorkspace);
        const Bytes saved = saved_of(i);
        offload_.before_forward(i, saved);
        at(saved_, i, pass) = emitter_.acquire(emitter_.compute, code.saved_label, saved - offload_.leaves(i, saved), Category::kActivations);
      });
      lane.add_steps(context, code.forward, {}, {});
      lane.add(context, [=, this] {
        emitter_.release(emitter_.compute, *workspace);
        offload_.after_forward();
        data_->after_forward(i);
        if (i + 1 == chunk.first + chunk.count) keep_output(pass);
      });
    }
  }

  void keep_output(const Pass& pass) {
    if (!strategy_.keeps_stage_outputs || model_.placement.stages == 1) return;
    outputs_[{pass.chunk, pass.micro_batch}] =
        emitter_.acquire(emitter_.compute, "stage.output", model_.boundary, Category::kActivations);
  }

  void drop_output(const Pass& pass) {
    const auto output = outputs_.find({pass.chunk, pass.micro_batch});
    if (output == outputs_.end()) return;
    emitter_.release(emitter_.compute, output->second);
    outputs_.erase(output);
  }

  // Behind the first of a group the layer's input is brought back, too.
  void recompute(const Pass& pass, std::size_t i, PassLane& lane) {
    const StageBlock& block = model_.blocks[i];
    const CompiledBlock& code = compiled_.at(block.block);
    if (code.recompute.empty()) return;
    const plan::Context again{Stage::kRecompute, block.layer, pass.micro_batch};
    lane.add(again, [=, this, &code, &block] {
      const Bytes size = block.block->recompute_peak + (block.group_first == i ? Bytes{0} : code.saved);
      at(recomputed_, i, pass) = emitter_.acquire(emitter_.compute, code.recompute_label, size, Category::kActivations);
    });
    lane.add_steps(again, code.recompute, {}, {});
  }

  // Both gradients, or what the input's needs alone.
  void backward(const Pass& pass, bool with_weights, PassLane& lane) {
    const StageChunk chunk = model_.chunks[pass.chunk];
    lane.add({Stage::kBackward, {}, pass.micro_batch}, [=, this] { await(pass); });
    for (std::size_t i = chunk.first + chunk.count; i-- > chunk.first;) {
      const StageBlock& block = model_.blocks[i];
      const CompiledBlock& code = compiled_.at(block.block);
      const plan::Context context{Stage::kBackward, block.layer, pass.micro_batch};
      const auto workspace = std::make_shared<std::optional<plan::BufferId>>();
      lane.add(context, [=, this] {
        data_->before_backward(i);
        const auto next = i > chunk.first ? std::optional{i - 1} : std::nullopt;
        offload_.before_backward(i, saved_of(i), next, next ? saved_of(*next) : Bytes{0});
      });
      if (i == block.group_last)
        for (std::size_t j = block.group_first; j <= i; ++j) recompute(pass, j, lane);
      lane.add(context, [=, this, &code, &block] {
        *workspace = emitter_.acquire(emitter_.compute, code.workspace_label, block.block->backward_workspace,
                                                Category::kWorkspace);
      });
      if (with_weights) {
        lane.add_steps(context, code.backward, [=, this](std::size_t step) { data_->before_backward_step(i, step); },
                       [=, this](std::size_t step) { data_->after_backward_step(i, step); });
      } else {
        lane.add_steps(context, code.backward_input, {}, {});
      }
      lane.add(context, [=, this, &code] {
        emitter_.release(emitter_.compute, *workspace);
        emitter_.release(emitter_.compute, at(recomputed_, i, pass));
        emitter_.release(emitter_.compute, at(saved_, i, pass));
        if (!with_weights) {
          at(kept_, i, pass) =
              emitter_.acquire(emitter_.compute, code.kept_label, code.kept_for_weights, Category::kActivations);
        }
        if (i + 1 == chunk.first + chunk.count) port_.free_received(pass);
        if (i == chunk.first) drop_output(pass);
        if (with_weights) {
          data_->after_backward(i);
          offload_.after_backward(i, pass.micro_batch);
          if (strategy_.host_waits == HostWaits::kGradients) {
            emitter_.host_waits_for(emitter_.builder.stream(plan::StreamKind::kCommunication, "dp.reduce"));
            emitter_.host_waits_for(emitter_.builder.stream(plan::StreamKind::kDeviceToHost, "offload.out"));
          }
        }
      });
    }
  }

  // Between the passes, by the first of blocks that are computed again together.
  [[nodiscard]] Bytes saved_of(std::size_t block) const {
    return model_.blocks[block].group_first == block ? compiled_.at(model_.blocks[block].block).saved : Bytes{0};
  }

  void weights(const Pass& pass, PassLane& lane) {
    const StageChunk chunk = model_.chunks[pass.chunk];
    for (std::size_t i = chunk.first + chunk.count; i-- > chunk.first;) {
      const StageBlock& block = model_.blocks[i];
      const CompiledBlock& code = compiled_.at(block.block);
      const plan::Context context{Stage::kWeightGradient, block.layer, pass.micro_batch};
      lane.add_steps(context, code.backward_weight, [=, this](std::size_t step) { data_->before_backward_step(i, step); },
                     [=, this](std::size_t step) { data_->after_backward_step(i, step); });
      lane.add(context, [=, this, &code] {
        // The gradients of norms, made with the input's, count as ready with the block's last step.
        if (!code.backward.empty()) {
          const std::size_t last = code.backward.size() - 1;
          if (code.backward_weight.empty() || code.backward_weight.back().index != last) data_->after_backward_step(i, last);
        }
        emitter_.release(emitter_.compute, at(kept_, i, pass));
        data_->after_backward(i);
      });
    }
  }

  // ZeRO-2 and 3 hold a shard of each gradient by now, or the whole of it until the optimizer.
  void sum_partial_gradients() {
    const std::int64_t parts = shards_gradients(strategy_) ? shard_size(strategy_) : 1;
    const auto all_reduce = [&](const char* label, plan::GroupId group, std::int64_t elements, plan::Purpose purpose) {
      emitter_.builder.collective(emitter_.compute, label,
                                  {plan::CollectiveKind::kAllReduce, group,
                                   gradient_bytes(strategy_, ceil_div(elements, parts)), strategy_.gradient_dtype,
                                   purpose});
    };
    if (!groups_.copies.empty() && model_.parameters > 0) {
      const std::int32_t lower = std::min(model_.stage, model_.placement.stages - 1 - model_.stage);
      all_reduce("gradient.copies", groups_.copies[static_cast<std::size_t>(lower)], model_.parameters,
                 plan::Purpose::kPipeline);
    }
    if (model_.partial_gradients > 0)
      all_reduce("gradient.partial", *groups_.tensor, model_.partial_gradients, plan::Purpose::kTensor);
    if (model_.tied_gradients > 0)
      all_reduce("gradient.tied_embedding", *groups_.embedding, model_.tied_gradients, plan::Purpose::kPipeline);
  }

  using Buffers = std::vector<std::optional<plan::BufferId>>;  // by micro-batch and block

  std::optional<plan::BufferId>& at(Buffers& buffers, std::size_t block, const Pass& pass) const {
    return buffers[pass.micro_batch * model_.blocks.size() + block];
  }

  const StageModel& model_;
  const Strategy& strategy_;
  const Groups& groups_;
  const ActionList& actions_;
  Emitter emitter_;
  PipelinePort port_;
  OffloadWriter offload_;
  std::unique_ptr<DataParallel> data_;
  std::map<const workload::Block*, CompiledBlock> compiled_;  // looked up only, never walked
  Buffers saved_;  // from a forward pass to its backward pass
  std::map<std::pair<std::uint8_t, std::uint16_t>, std::optional<plan::BufferId>> outputs_;  // by chunk and micro-batch
  Buffers recomputed_;  // from a group's recomputation to each block's backward pass
  Buffers kept_;   // from the input gradients to the weight gradients
};

}  // namespace

plan::Program make_stage_program(const StageProgramInputs& inputs) { return StageWriter{inputs}.write(); }

}  // namespace stepcast::parallel
