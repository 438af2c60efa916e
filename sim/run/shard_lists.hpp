// sim/run/shard_lists.hpp — what it costs to reduce-scatter gradients, or to gather parameters, through a list with every rank's part.
//
// Model    c copies of each of n parts of S/n bytes, one kernel each, beside the collective's own time:
//            host    c n t_call                      beside what the device still has to do
//            device  c n kernels that read and write c S bytes, the GPU model's time of them
// Symbols  t_call [s] one call from C++ or a loop without autograd, its launch included
// Source   t_call: 1.9 us of a core without a device, in the loops named below (PyTorch 1.13, Xeon: a slice and its torch.cat 3.0, Tensor.copy_ 0.6,
//          Tensor.narrow 1.3 us), and a launch by GPU events, 5.6 us on a node of A100 (microsoft/superbenchmark@700d650: 5.3 to 6.0)
//          The copies: DeepSpeed v0.5.10, reduce_scatter_coalesced (runtime/comm/coalesced_collectives.py), before it _allgather_param and
//          _reduce_scatter_gradient (runtime/zero/partition_parameters.py); torch.distributed.reduce_scatter and all_gather
// Ignores  which stream they run on
#pragma once

#include <cstddef>

#include "sim/run/compiled_program.hpp"
#include "sim/run/machine.hpp"

namespace stepcast::run {

struct ShardLists {
  Duration host;
  Duration device;
};

// Nothing where the site is neither a reduction of gradients nor a gather of parameters, or the machine's framework makes no lists.
ShardLists list_shards(const CollectiveSite& site, std::size_t ranks, const Machine& machine);

}  // namespace stepcast::run
