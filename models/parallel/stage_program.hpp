// models/parallel/stage_program.hpp — the instruction list of one pipeline stage for one step.
//
// Order    states allocated; gradients zeroed; the schedule's actions; gradients synchronised (data
//          axis, partial tensor-parallel gradients, tied embedding, as Megatron-LM finalises them;
//          DualPipe: the two copies of a part);
//          optimizer; parameters gathered
// Memory   each (block, micro-batch) keeps one buffer, the sum of its saved tensors, from its forward
//          pass to the end of its backward pass; workspaces and what recomputation brings back live
//          for one pass of one block
//          A backward pass that puts its weight gradients off frees what only the input gradients need;
//          the linear layers' inputs and output gradients live on to the weight gradients
//          A stage's output is freed once sent, or (keeps_stage_outputs) with the micro-batch's backward pass
// Overlapped actions  kernels of the two passes in turn: each collective that one of them has to wait
//          for runs on stream tp beside the other's kernels (DeepSeek-AI 2024, section 3.2.1)
// Tensor parallelism  a collective blocks compute, unless it may overlap: then it runs on stream tp,
//          and compute waits for it before the first step that needs it
// Ignores  the loss scalar and its reductions over stages and data ranks
#pragma once

#include "models/parallel/groups.hpp"
#include "models/parallel/messages.hpp"
#include "models/parallel/stage_model.hpp"
#include "models/parallel/strategy.hpp"
#include "sim/plan/program.hpp"

namespace stepcast::parallel {

// All of these outlive the call.
struct StageProgramInputs {
  const StageModel& model;
  const Strategy& strategy;
  const Groups& groups;
  const ActionList& actions;
  const MessagePlan& messages;
};

plan::Program make_stage_program(const StageProgramInputs& inputs);

}  // namespace stepcast::parallel
