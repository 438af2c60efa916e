// executor/cpu/measure.hpp — a plan whose instructions are points to measure, each for itself: those that share a `layer` are one point and
// run at once, on their streams. A point is repeated until its median is known (common/sampling.hpp); all workers stop together.
#pragma once

#include "executor/common/record_file.hpp"
#include "executor/common/sampling.hpp"
#include "executor/cpu/cpu_device.hpp"

namespace stepcast::executor {

// Appends a block a point: a step for each sample, with the clock as found ("clock_mhz").
void measure_points(const plan::Program& program, CpuDevice& device, Messenger& messenger, RankId rank, std::uint32_t workers, const SamplingRule& rule,
                    std::int64_t clock_offset_ns, RecordWriter& records);

}  // namespace stepcast::executor
