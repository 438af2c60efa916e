// models/parallel/optimizer_step.hpp — from finished gradients to updated parameters, and the zeroing
// of gradients before the next accumulation.
//
// Model    n elements this worker updates; each kernel streams its operands once:
//            zero    writes e_g n
//            norm    reads e_g n, 2 FLOP an element, then 4 bytes are all-reduced over every worker
//                    that holds a part of the gradient
//            update  by the optimizer (optimizer.hpp); Adam reads gradient, moments and master (or the parameter
//                    itself where there is no master) and writes moments, master and the parameter in its own dtype
//          One fused multi-tensor kernel takes at most 36 tensors and 320 blocks of 65,536 elements.
// Source   NVIDIA apex csrc/multi_tensor_apply.cuh (limits at depth 4: depth_to_max_tensors,
//          depth_to_max_blocks) and MultiTensorApply(2048 * 32); Kingma and Ba 2015, algorithm 1
// Ignores  scaling by the clip factor (folded into the update), second-stage reductions of the norm
#pragma once

#include "models/parallel/emitter.hpp"
#include "models/parallel/groups.hpp"
#include "models/parallel/offload.hpp"
#include "models/parallel/stage_model.hpp"
#include "models/parallel/state.hpp"
#include "models/parallel/strategy.hpp"

namespace stepcast::parallel {

plan::Kernel zero_kernel(const StageModel& model, const Strategy& strategy);
plan::Kernel norm_kernel(const StageModel& model, const Strategy& strategy);

void zero_gradients(const StageModel& model, const Strategy& strategy, Emitter& emitter);
void update_parameters(const StageModel& model, const Strategy& strategy, const Groups& groups, Emitter& emitter, OffloadWriter& offload);

}  // namespace stepcast::parallel
