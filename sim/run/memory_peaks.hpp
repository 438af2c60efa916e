// sim/run/memory_peaks.hpp — peak device memory of each program: its buffers through the caching
// allocator, plus what every process holds outside it.
//
// Model    total = CUDA context + communicator buffers + the allocator's reserved peak          (1)
//          the allocator also holds the workspaces of matrix libraries, from first use on (counted as workspace)
//          fragmentation = reserved peak - live at the peak
//          Where (1) exceeds the device, the allocator gives free segments back and tries again: a program that passes so
//          fits, and (1) is of that run; one that does not is reported as it would be on a larger device
// Source   (1) is what nvidia-smi shows for a PyTorch process; allocator: sim/plan/caching_allocator
// Ignores  memory that other processes hold, the driver's own reserve
#pragma once

#include <vector>

#include "sim/plan/plan.hpp"
#include "sim/run/machine.hpp"
#include "sim/run/result.hpp"

namespace stepcast::run {

// One a program, in program order. Cost O(instructions), independent of the number of workers.
std::vector<MemoryPeak> memory_peaks(const plan::Plan& plan, const Machine& machine);

}  // namespace stepcast::run
