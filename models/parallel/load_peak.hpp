// models/parallel/load_peak.hpp — device memory of a worker while its model comes to be, before the first step.
//
// Symbols  N [1] parameters of the worker's stage, whole (not sharded); U [1] of its largest unit (a layer, or embedding and
//          head); S [B] states that it will hold (state.hpp): parameters, gradients, optimizer; S_p, S_g of these; e_p [B]
//          bytes of a parameter
// Model    in place     tensors made on the device in the training format and kept (Megatron-LM): S              (1)
//          cast         a whole model in fp32 on the device, cast, then given its states: max(4 N + e_p N, S)     (2)
//          sharded      a whole model in fp32 on the device, then cut into shards one unit at a time (FSDP without a
//                       meta device): 4 N + S_p, and S                                                            (3)
//          meta device  shapes first, then one unit at a time in fp32 (FSDP with a meta device): S_p + 4 U, and S   (4)
//          through the host  a checkpoint copied tensor by tensor: S + 4 B an element of the largest tensor's unit (5)
//          on the device     a checkpoint read onto the device, then copied into the states: S + (S - S_g)         (6)
// Source   Megatron-LM core/tensor_parallel/layers.py (params_dtype, in-place initialisation); PyTorch FSDP
//          documentation (sync_module_states, device_id, param_init_fn); torch.load (map_location)
// Ignores  the whole model in fp32 where most of it is frozen (adapters: ways (2) and (3) are left out); fp32 temporaries of random number generators, caches of an allocator that has run before
#pragma once

#include <string>
#include <vector>

#include "models/parallel/stage_model.hpp"
#include "models/parallel/strategy.hpp"

namespace stepcast::parallel {

struct LoadPeak {
  std::string way;
  Bytes peak;
};

// The ways that the strategy allows, each at the stage that needs most: (1) and (2), or with parameters sharded (3) and (4);
// then (5) and (6).
std::vector<LoadPeak> load_peaks(const workload::ModelShape& shape, const Strategy& strategy);

}  // namespace stepcast::parallel
