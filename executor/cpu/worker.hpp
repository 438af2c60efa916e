// executor/cpu/worker.hpp — one worker's part of a run: warm-up, steps, records.
#pragma once

#include "executor/common/record_file.hpp"
#include "executor/common/worker_options.hpp"
#include "executor/cpu/cpu_device.hpp"

namespace stepcast::executor {

// Plays the steps that `options` ask for and appends each to `records`. Steps begin together, at a barrier. `clock_offset_ns` is added
// to the times of steps.
void run_steps(const plan::Program& program, CpuDevice& device, const Payload& payload, Messenger& messenger, const WorkerOptions& options,
               std::int64_t clock_offset_ns, RecordWriter& records);

}  // namespace stepcast::executor
