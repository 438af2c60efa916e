#include "sim/run/memory_peaks.hpp"

#include <algorithm>

#include "sim/plan/memory_timeline.hpp"

namespace stepcast::run {

std::vector<MemoryPeak> memory_peaks(const plan::Plan& plan, const Machine& machine) {
  std::vector<MemoryPeak> peaks;
  for (std::size_t p = 0; p < plan.programs.size(); ++p) {
    const auto stage = std::find(plan.program_of_stage.begin(), plan.program_of_stage.end(), plan::ProgramId{p});
    SIM_CHECK(stage != plan.program_of_stage.end(), p);
    plan::PerAxis coordinates{0};
    coordinates[plan::Axis::kPipeline] = static_cast<std::int32_t>(std::distance(plan.program_of_stage.begin(), stage));

    const plan::MemoryTimeline timeline = plan::memory_timeline(plan.programs[p]);
    MemoryPeak peak{.program = plan::ProgramId{p}, .worker = plan.rank(coordinates)};
    peak.context = machine.gpu.parameters().context;
    peak.communicators = machine.communicator_bytes;
    peak.fragmentation = timeline.reserved_peak - timeline.peak;
    peak.by_category = timeline.at_peak;
    peak.total = peak.context + peak.communicators + timeline.reserved_peak;
    peak.instruction = timeline.instruction.value_or(0);
    peaks.push_back(peak);
  }
  return peaks;
}

}  // namespace stepcast::run
