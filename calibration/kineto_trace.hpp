// calibration/kineto_trace.hpp — traces of the PyTorch profiler (Kineto), plain or gzip, of any length: read once, front to back.
//
// Form     {"traceEvents": [...], "distributedInfo", "deviceProperties", ...} or the list alone; ts and dur in microseconds, integers
//          or fractions. Taken: kernel, gpu_memcpy, gpu_memset, user_annotation, gpu_user_annotation; launching calls of cuda_runtime and
//          cuda_driver for launch times. A file that ends within the list is read up to there, and says so.
//          Collectives: bytes as nccl-tests counts them, of "In msg nelems", "Out msg nelems" and dtype (PyTorch 2.2 and later).
// Source   docs.pytorch.org/docs/stable/profiler; pytorch/kineto libkineto/src/output_json.cpp; "Trace Event Format", Google, 2016
// Ignores  host operators, stacks, flow arrows, counters, host and user names
// Tests    unit/kineto_trace_test; diff/profiles_test (shared samples)
#pragma once

#include <string>

#include "calibration/gpu_trace.hpp"

namespace stepcast::calibration {

// Throws UserError where the file is no such trace or has nothing of a GPU.
GpuTrace read_kineto_trace(const std::string& path);

}  // namespace stepcast::calibration
