#include "sim/run/simulator.hpp"

#include <algorithm>

#include "sim/base/hash.hpp"
#include "sim/run/calls.hpp"
#include "sim/run/compiled_program.hpp"
#include "sim/run/groups.hpp"
#include "sim/run/interpreter.hpp"
#include "sim/run/link_paths.hpp"
#include "sim/run/memory_peaks.hpp"
#include "sim/run/recorder.hpp"
#include "sim/run/traffic.hpp"

namespace stepcast::run {
namespace {

constexpr std::size_t kBusiestLinks = 10;

std::vector<LinkLoad> busiest_links(const Interpreter& interpreter, const topology::LinkSlots& slots, Duration step) {
  std::vector<LinkLoad> loads;
  if (step == Duration{}) return loads;
  const std::vector<double> carried = interpreter.carried_by_link();
  for (std::size_t link = 0; link < interpreter.link_count(); ++link) {
    if (carried[link] <= 0.0) continue;
    const std::uint32_t slot = interpreter.slot_of_link(link);
    loads.push_back({.name = slots.name(slot),
                     .utilisation = carried[link] / (slots.capacity(slot) * step.seconds()),
                     .carried = Bytes{static_cast<std::int64_t>(carried[link])}});
  }
  const std::size_t kept = std::min(kBusiestLinks, loads.size());
  std::partial_sort(loads.begin(), loads.begin() + static_cast<std::ptrdiff_t>(kept), loads.end(),
                    [](const LinkLoad& a, const LinkLoad& b) {
                      return a.utilisation != b.utilisation ? a.utilisation > b.utilisation : a.name < b.name;
                    });
  loads.resize(kept);
  return loads;
}

// Core time that the busiest CPU socket spends on network traffic.
Duration socket_time(const Interpreter& interpreter, const Machine& machine, const topology::LinkSlots& slots) {
  std::optional<double> core_rate;  // networks share the cores, which move as much for each
  for (std::uint32_t n = 0; n < machine.fabric.networks.size(); ++n)
    if (const auto& sockets = machine.transports.of(n).sockets) core_rate = sockets->core_rate;
  if (!core_rate) return {};
  const std::vector<double> carried = interpreter.carried_by_link();
  double most = 0.0;
  for (std::size_t link = 0; link < interpreter.link_count(); ++link) {
    if (slots.kinds(interpreter.slot_of_link(link)).second == topology::DeviceKind::kCpu) most = std::max(most, carried[link]);
  }
  return Duration::from_seconds(most / *core_rate);
}

std::uint64_t fingerprint(const Result& result) {
  Fingerprint hash;
  hash.add(result.step.count());
  hash.add(std::uint64_t{result.critical_worker.value()});
  hash.add(result.breakdown.compute.count());
  hash.add(result.breakdown.bubble.count());
  for (const MemoryPeak& peak : result.memory) hash.add(peak.total.count());
  return hash.value();
}

}  // namespace

Result simulate(const plan::Plan& plan, const Machine& machine, const SimulationOptions& options) {
  SIM_CHECK(plan.world_size() <= static_cast<std::int32_t>(machine.fabric.gpus.size()), plan.world_size(),
            machine.fabric.gpus.size());
  Result result;
  const CompiledPlan compiled = compile(plan, machine);
  const GroupTable groups{plan, machine};
  LinkPaths paths{machine.fabric, machine.paths};
  CallTable calls{machine, compiled, groups, paths};
  FoldAttempt fold{.links = std::nullopt, .reason = "folding was switched off"};
  // A planner sees all flows in one order, folded or not.
  const bool plans = machine.paths.policy == network::PathPolicy::kPlanned;
  if (options.fold || plans) fold = fold_links(plan, machine, compiled, groups, calls, paths, options.fold_unlike);
  if (!options.fold) fold.links.reset();
  result.folded = fold.links.has_value();
  result.fold_note = fold.reason;

  Recorder recorder{plan, options.record};
  Interpreter interpreter{plan, machine, compiled, groups, calls, paths, fold.links ? &*fold.links : nullptr, recorder};
  interpreter.run(options.max_events);

  const Interpreter::WorkerEnd critical = interpreter.critical();
  result.step = critical.time.since_start();
  result.critical_worker = critical.rank;
  result.breakdown = to_breakdown(critical.parts);
  SIM_CHECK(result.breakdown.total() == result.step, result.breakdown.total().count(), result.step.count());
  if (options.memory) result.memory = memory_peaks(plan, machine);
  result.busiest_links = busiest_links(interpreter, paths.slots(), result.step);
  result.socket_time = socket_time(interpreter, machine, paths.slots());
  result.events = interpreter.engine().events_fired();
  result.workers_simulated = static_cast<std::int64_t>(interpreter.worker_count());
  result.order_fingerprint = interpreter.engine().order_fingerprint();
  result.results_fingerprint = fingerprint(result);
  if (!recorder.empty()) result.recording = recorder.finish();
  return result;
}

}  // namespace stepcast::run
