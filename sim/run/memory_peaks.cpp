#include "sim/run/memory_peaks.hpp"

#include <algorithm>

#include "sim/plan/memory_timeline.hpp"

namespace stepcast::run {

namespace {

plan::MemoryTimeline timeline_on(const plan::Program& program, const Machine& machine, Bytes outside) {
  const std::optional<Bytes> device = machine.device_memory;
  const plan::MemoryTimeline free = plan::memory_timeline(program, {.expandable_segments = machine.expandable_segments});
  if (machine.expandable_segments || !device || outside + free.reserved_peak <= *device || outside + free.peak > *device) return free;
  const plan::MemoryTimeline squeezed = plan::memory_timeline(program, {.capacity = *device - outside});
  return squeezed.out_of_memory ? free : squeezed;
}

}  // namespace

std::vector<MemoryPeak> memory_peaks(const plan::Plan& plan, const Machine& machine) {
  std::vector<MemoryPeak> peaks;
  for (std::size_t p = 0; p < plan.programs.size(); ++p) {
    const auto stage = std::find(plan.program_of_stage.begin(), plan.program_of_stage.end(), plan::ProgramId{p});
    SIM_CHECK(stage != plan.program_of_stage.end(), p);
    plan::PerAxis coordinates{0};
    coordinates[plan::Axis::kPipeline] = static_cast<std::int32_t>(std::distance(plan.program_of_stage.begin(), stage));

    const Bytes outside = machine.context + machine.communicator_bytes + machine.library_workspace;
    const plan::MemoryTimeline timeline = timeline_on(plan.programs[p], machine, outside);
    MemoryPeak peak{.program = plan::ProgramId{p}, .worker = plan.rank(coordinates)};
    peak.context = machine.context;
    peak.communicators = machine.communicator_bytes;
    peak.fragmentation = timeline.reserved_peak - timeline.peak;
    peak.by_category = timeline.at_peak;
    peak.by_category[static_cast<std::size_t>(plan::Category::kWorkspace)] += machine.library_workspace;
    peak.total = outside + timeline.reserved_peak;
    peak.instruction = timeline.instruction.value_or(0);
    peaks.push_back(peak);
  }
  return peaks;
}

}  // namespace stepcast::run
