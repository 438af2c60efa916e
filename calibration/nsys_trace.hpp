// calibration/nsys_trace.hpp — SQLite exports of Nsight Systems (`nsys export --type sqlite`), and files of nvprof, opened read only.
//
// Form     Tables are there only if their events occurred, columns by version: both are looked up, never assumed. Taken:
//          CUPTI_ACTIVITY_KIND_KERNEL (nvprof: CONCURRENT_KERNEL too), _MEMCPY, _MEMSET, _GRAPH_TRACE, ranges of NVTX_EVENTS, launching
//          calls of _RUNTIME (and _DRIVER) for launch times. A worker is a device of a process.
// Source   docs.nvidia.com/nsight-systems/UserGuide "SQLite Schema Reference" (export schemas 2 and 3)
// Ignores  sizes of collectives (NVTX payloads of NCCL), operating system and CPU samples, metrics of the GPU
// Tests    unit/nsys_trace_test; diff/profiles_test (shared samples)
#pragma once

#include <string>

#include "calibration/gpu_trace.hpp"

namespace stepcast::calibration {

// Throws UserError where the file is no such database or has nothing of a GPU.
GpuTrace read_nsys_trace(const std::string& path);

}  // namespace stepcast::calibration
