// executor/common/steps.hpp — one worker's part of a run: warm-up, steps, records.
#pragma once

#include <functional>

#include "executor/common/device.hpp"
#include "executor/common/payload.hpp"
#include "executor/common/record_file.hpp"
#include "executor/common/together.hpp"
#include "executor/common/worker_options.hpp"

namespace stepcast::executor {

// Plays the steps that `options` ask for and appends each to `records`. Steps begin together. `clock_offset_ns` is added to their times;
// `ended` is called after each, warm-up too.
void run_steps(const plan::Program& program, Device& device, const Payload& payload, Together& together, const WorkerOptions& options,
               std::int64_t clock_offset_ns, RecordWriter& records, const std::function<void()>& ended);

}  // namespace stepcast::executor
