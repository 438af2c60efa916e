// models/parallel/state.hpp — what a worker holds all the time: parameters, gradients, optimizer
// states; and the part of the parameters that it updates.
//
// Symbols  P parameters of the stage per tensor-parallel rank, d shard group size, e_p, e_g bytes of a
//          parameter and of a gradient
// Model    parameters  e_p P, ZeRO-3: e_p P/d
//          gradients   e_g P, ZeRO-2 and 3: e_g P/d, unless summed once a step (no_sync)
//          and e_p P more where the backward pass's own gradients stay beside fp32 sums
//          optimizer   (4 if a master copy is kept + the optimizer's states) P, ZeRO-1, 2 and 3: P/d
//          frozen weights (LoRA) as they are stored, ZeRO-3: /d; scales of 4-bit weights whole. P is then adapters
//          buckets     a second copy of the gradients where buckets are no views (torch DistributedDataParallel)
//          placeholders  where weight gradients are added up in their GEMM, autograd is handed a tensor of the weight's
//          shape that nobody reads: Transformer Engine keeps one for each shape of a layer's weights, e_p an element
// Source   placeholders: NVIDIA/TransformerEngine pytorch/module/base.py, get_dummy_wgrad
//          Rajbhandari et al. 2020 (ZeRO), section 3.1: with fp16 gradients and Adam 2 + 2 + 12 bytes
//          routed experts' part of P is divided by its own replicas instead
// Ignores  uneven shards: P/d is rounded up
#pragma once

#include "models/parallel/stage_model.hpp"
#include "models/parallel/strategy.hpp"

namespace stepcast::parallel {

struct PersistentState {
  Bytes parameters;
  Bytes gradients;
  Bytes optimizer;
  Bytes placeholders;
  Bytes buckets;
  std::int64_t gradient_elements = 0;
  std::int64_t updated_elements = 0;  // by this worker's optimizer
};

PersistentState persistent_state(const StageModel& model, const Strategy& strategy);

}  // namespace stepcast::parallel
