#include "app/network/collective_times.hpp"

#include <algorithm>

#include "sim/plan/builder.hpp"
#include "sim/run/calls.hpp"
#include "sim/run/simulator.hpp"

namespace stepcast::app {
namespace {

using plan::CollectiveKind;

bool is_split(CollectiveKind kind) {
  return kind == CollectiveKind::kAllGather || kind == CollectiveKind::kReduceScatter || kind == CollectiveKind::kAllToAll;
}

plan::Plan plan_of(const CollectiveJob& job, Bytes bytes, int calls) {
  plan::ProgramBuilder b{"collective"};
  const plan::StreamId stream = b.stream(plan::StreamKind::kCompute, "comm");
  for (int i = 0; i < calls; ++i) {
    b.collective(stream, "collective", {.kind = job.kind, .group = plan::GroupId{0u}, .bytes = bytes, .dtype = plan::Dtype::kFp32,
                                        .purpose = job.purpose,
                                        .volumes = job.volumes ? std::optional{plan::VolumesId{0u}} : std::nullopt});
  }
  plan::Plan plan;
  plan.name = "collective";
  plan.degrees[plan::Axis::kData] = job.ranks;
  plan.groups.push_back({.name = "all", .axes = {plan::Axis::kData}, .stages = {}, .split = {}});
  if (job.volumes) plan.volumes.push_back(*job.volumes);
  plan.programs.push_back(std::move(b).finish());
  plan.program_of_stage = {plan::ProgramId{0u}};
  return plan;
}

collective::Choice choice_of(const plan::Plan& plan, const run::Machine& machine) {
  const run::CompiledPlan compiled = run::compile(plan, machine);
  const run::GroupTable groups{plan, machine};
  run::LinkPaths paths{machine.fabric, machine.paths};
  run::CallTable calls{machine, compiled, groups, paths};
  return calls.call(0, 0).choice;
}

}  // namespace

double bus_factor(CollectiveKind kind, std::int64_t ranks) {
  const double n = static_cast<double>(ranks);
  if (kind == CollectiveKind::kAllReduce) return 2.0 * (n - 1.0) / n;
  return is_split(kind) ? (n - 1.0) / n : 1.0;
}

std::vector<CollectiveTime> time_collective(const CollectiveJob& job, std::span<const Bytes> sizes, const run::Machine& machine) {
  constexpr int kMany = 5;
  constexpr std::int64_t kAlignment = 16;
  run::Machine issuing = machine;
  const std::int64_t partners = job.kind == CollectiveKind::kAllToAll ? job.ranks - 1 : job.kind == CollectiveKind::kSendReceive ? 1 : 0;
  issuing.communication_launch = (job.launch + job.issue * (2 * partners)) * job.gpus_per_process;
  std::vector<CollectiveTime> times;
  for (const Bytes asked : sizes) {
    CollectiveTime row;
    if (is_split(job.kind)) {
      const std::int64_t each = asked.count() / job.ranks / kAlignment * kAlignment;
      row.count = each / job.element_bytes;
      row.size = Bytes{each * job.ranks};
    } else {
      row.count = asked.count() / job.element_bytes;
      row.size = Bytes{row.count * job.element_bytes};
    }
    const plan::Plan one = plan_of(job, row.size, 1);
    const Duration first = run::simulate(one, issuing, {}).step;
    const Duration last = run::simulate(plan_of(job, row.size, kMany), issuing, {}).step;
    row.time = Duration::picoseconds((last - first).count() / (kMany - 1));
    row.host_bound = row.time <= issuing.communication_launch;
    const collective::Choice choice = choice_of(one, issuing);
    row.algorithm = choice.algorithm;
    row.protocol = choice.protocol;
    row.algbw = row.time == Duration{} ? 0.0 : row.size.si() / row.time.seconds();
    row.busbw = row.algbw * bus_factor(job.kind, job.ranks);
    times.push_back(row);
  }
  return times;
}

}  // namespace stepcast::app
