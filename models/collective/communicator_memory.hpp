// models/collective/communicator_memory.hpp — device memory that NCCL holds for a communicator.
//
// Model    M = channels * connections * (Simple + LL + LL128 buffer)                           (1)
//          a ring receives from one peer per channel: one connection
// Symbols  buffers [B] at NCCL's defaults: Simple 4 MiB; LL 8 lines * 512 threads * 8 steps * 16 B;
//          LL128 120 elements * 640 threads * 8 steps * 8 B
// Source   NVIDIA/nccl src/init.cc (DEFAULT_BUFFSIZE, DEFAULT_LL_BUFFSIZE, DEFAULT_LL128_BUFFSIZE) and
//          src/include/device.h (the constants in them)
// Valid    NCCL_BUFFSIZE and its kin left alone
// Ignores  trees, NVLS and point-to-point connections, which come on top; proxy memory in the host
#pragma once

#include <cstdint>

#include "sim/base/units.hpp"

namespace stepcast::collective {

inline constexpr Bytes kSimpleBuffer{4 * 1024 * 1024};
inline constexpr Bytes kLlBuffer{8 * 512 * 8 * 16};
inline constexpr Bytes kLl128Buffer{120 * 640 * 8 * 8};

constexpr Bytes communicator_memory(std::int64_t channels) {
  return (kSimpleBuffer + kLlBuffer + kLl128Buffer) * channels;
}

}  // namespace stepcast::collective
