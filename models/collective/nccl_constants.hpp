// models/collective/nccl_constants.hpp — NCCL's published constants for a GPU generation and a number of
// hosts: the prior.
//
// Model    Ceilings by compute capability and by 1, 2 or more hosts: LL payload, LL128 per channel, trees
//          per channel, trees' correction by size.
// Source   NVIDIA/nccl src/graph/tuning.cc, 2.26 and 2.27 (llMaxBws, perChMaxRingLL128Bws, perChMaxTreeBws,
//          treeCorrectionFactor; ncclTopoTuneModel, ncclTopoGetAlgoTime); NVLS efficiency: 2.28. Channels:
//          what its search finds on the vendor's 8-GPU boxes
// Ignores  Power hosts; the CPU's vendor, which decides LL's ceiling across hosts: AMD's row is taken
//          (Intel's is 39 and 20.4 GB/s)
// Tests    unit/collective_test
#pragma once

#include <string>

#include "models/collective/parameters.hpp"

namespace stepcast::collective {

enum class Generation : std::uint8_t { kVolta, kAmpere, kHopper, kBlackwell };

// "7.0" and older, "8.x", "9.0", "10.x" and newer; other makers' GPUs count as Ampere.
Generation generation_of(const std::string& architecture);

Parameters nccl_constants(Generation generation);

// [B/s] payload of LL and LL128 per channel for that many hosts.
double ll_ceiling(Generation generation, std::size_t hosts);

// Channels that a call of so many bytes uses, at most `channels`: NCCL drops channels while each thread of one would have less
// to do than its threshold (8 B of LL and LL128, 64 B of Simple; ring LL: times the ranks). 512, 640 and 512 threads.
// Source   src/enqueue.cc, src/graph/tuning.cc (threadThresholds), src/include/device.h
std::int64_t channels_used(Algorithm algorithm, Protocol protocol, Bytes bytes, std::size_t ranks, std::int64_t channels);

// Share of its bandwidth that NCCL grants a tree at this size; 1 for Simple, whose loss at middle sizes is
// the pipeline's fill (cost.hpp).
double tree_correction(Protocol protocol, Bytes bytes);

}  // namespace stepcast::collective
