// models/collective/communicator_memory.hpp — device memory that NCCL holds for a communicator.
//
// Model    M = channels * 2 * (Simple + LL + LL128 buffer + staging)                            (1)
//          each channel is connected as a ring and as a tree; a connection has buffers to receive into, and
//          sends through an allocation of the driver's granularity
// Symbols  buffers [B] at NCCL's defaults: Simple 4 MiB; LL 8 lines * 512 threads * 8 steps * 16 B;
//          LL128 120 elements * 640 threads * 8 steps * 8 B; staging 2 MiB
// Source   NVIDIA/nccl src/init.cc (DEFAULT_BUFFSIZE, DEFAULT_LL_BUFFSIZE, DEFAULT_LL128_BUFFSIZE) and
//          src/include/device.h (the constants in them); the sizes of allocations: NVIDIA/nccl issue 1685 (10 MiB and 2 MiB)
// Valid    NCCL_BUFFSIZE and its kin left alone. Measured (NVIDIA/nccl issue 964, A100 with NVLink, 24 channels): 544 MiB for two
//          ranks, of which (1) says 537; 688 MiB for four
// Ignores  a tree's further children (the four ranks above), NVLS and point-to-point connections, connections made on first use
//          only (2.22 and up); proxy memory in the host
#pragma once

#include <cstdint>

#include "sim/base/units.hpp"

namespace stepcast::collective {

inline constexpr Bytes kSimpleBuffer{4 * 1024 * 1024};
inline constexpr Bytes kLlBuffer{8 * 512 * 8 * 16};
inline constexpr Bytes kLl128Buffer{120 * 640 * 8 * 8};
inline constexpr Bytes kStaging{2 * 1024 * 1024};

constexpr Bytes communicator_memory(std::int64_t channels) {
  return (kSimpleBuffer + kLlBuffer + kLl128Buffer + kStaging) * (2 * channels);
}

}  // namespace stepcast::collective
