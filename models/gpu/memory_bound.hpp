// models/gpu/memory_bound.hpp — kernels that only move data: elementwise, norm, softmax, embedding,
// loss, optimizer.
// Model    t = bytes * (h / B_l2 + (1 - h) / (e * B_mem))                                            (1)
//          h = clamp(4 (1 - bytes / L2), 0, 1)                                                       (2)
// Symbols  bytes [B] read and written; h [1] share found in L2: all up to three quarters of it, none once the
//          kernel's own data fill it; e [1] fraction of the data-sheet bandwidth that streams reach
// Source   (1) roofline with two levels; (2) least-recently-used replacement keeps nothing of a stream
//          longer than the cache; quantisation kernels on H100 and L40S hold their rate to about L2's size
// Valid    coalesced access   Ignores  occupancy, strided access, atomics contention
#pragma once

#include "models/gpu/gpu_parameters.hpp"
#include "sim/plan/kernel.hpp"

namespace stepcast::gpu {

// Without the kernel latency.
double memory_seconds(const GpuParameters& gpu, double bytes, double efficiency);

// Norm, softmax, loss: kernels with an efficiency of their own.
bool reduces_rows(plan::OpClass op);

double memory_bound_seconds(const GpuParameters& gpu, const plan::Kernel& kernel);

}  // namespace stepcast::gpu
