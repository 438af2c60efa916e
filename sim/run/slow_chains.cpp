#include "sim/run/slow_chains.hpp"

#include <algorithm>

namespace stepcast::run {

SlowChains::SlowChains(const plan::Plan& plan, const Machine& machine, const CompiledPlan& compiled)
    : plan_{plan}, machine_{machine}, compiled_{compiled} {}

SlowChains::Case& SlowChains::case_of(std::size_t program, std::size_t stream, const gpu::Taken& taken) {
  const auto found = std::find_if(cases_.begin(), cases_.end(), [&](const Case& c) {
    return c.program == program && c.stream == stream && c.taken == taken;
  });
  if (found != cases_.end()) return *found;
  Case fresh{.program = program, .stream = stream, .taken = taken};
  const gpu::GpuModel left{gpu::beside(machine_.gpu.parameters(), taken)};
  for (const plan::Kernel& kernel : plan_.programs[program].kernels)
    fresh.kernels.push_back(left.time(kernel) + left.kernel_gap() * kernel.launches);
  fresh.steps.resize(compiled_.programs[program].streams[stream].steps.size());
  return cases_.emplace_back(std::move(fresh));
}

Duration SlowChains::busy(std::size_t program, std::size_t stream, std::uint32_t step, const gpu::Taken& taken) {
  if (machine_.beside_collective) {
    const Duration alone = compiled_.programs[program].streams[stream].steps[step].busy;
    return std::max(alone, Duration::from_seconds(*machine_.beside_collective * alone.seconds()));
  }
  Case& c = case_of(program, stream, taken);
  std::optional<Duration>& known = c.steps[step];
  if (!known) {
    const CompiledStream& compiled = compiled_.programs[program].streams[stream];
    const CompiledStep& chain = compiled.steps[step];
    Duration sum;
    for (std::uint32_t i = chain.first; i < chain.first + chain.count; ++i) {
      const plan::Body& body = plan_.programs[program].instructions[compiled.instructions[i].index].body;
      sum += c.kernels[std::get<plan::Compute>(body).kernel.index()];
    }
    known = std::max(sum, chain.busy);
  }
  return *known;
}

}  // namespace stepcast::run
