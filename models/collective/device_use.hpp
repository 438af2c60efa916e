// models/collective/device_use.hpp — what a collective's kernel takes from each of its GPUs while it is there.
//
// Model    SMs = channels: a channel is one block of threads, which shares its SM with no other kernel           (1)
//          memory traffic = c V / T                                                                              (2)
// Symbols  V [B] the algorithm's traffic through a GPU, T [s] the time that it moves; c [1]: what comes from a neighbour is
//          written and read again (2); a sum reads the GPU's own operand besides (3); all-reduce does one after
//          the other (2.5), a tree up and down (twice that for V = S); with NVLS the switch sums (2)
// Source   (1) the maintainer in NVIDIA/nccl issue 689; (2) in issue 1428: "at least 2x", with user data 3x
// Ignores  buffers in which messages of other hosts arrive; LL's smaller blocks; send and receive between stages
// Tests    unit/collective_test
#pragma once

#include "models/collective/cost.hpp"

namespace stepcast::collective {

struct DeviceUse {
  std::int64_t sms = 0;
  Bandwidth memory;
};

// `moving`: how long the bytes move. Requires: > 0.
DeviceUse device_use(plan::CollectiveKind kind, Bytes bytes, const Choice& choice, std::size_t ranks, Duration moving,
                     const Parameters& parameters);

}  // namespace stepcast::collective
