#include "sim/run/groups.hpp"

#include <algorithm>
#include <limits>

namespace stepcast::run {
namespace {

constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();  // rank outside the group's stages

std::size_t count_hosts(const std::vector<RankId>& members, const topology::Fabric& fabric) {
  std::vector<std::uint32_t> hosts;
  hosts.reserve(members.size());
  for (const RankId rank : members) hosts.push_back(fabric.domain_of(rank.value()));
  std::sort(hosts.begin(), hosts.end());
  return static_cast<std::size_t>(std::unique(hosts.begin(), hosts.end()) - hosts.begin());
}

bool takes_part(const plan::Group& group, const plan::PerAxis& coordinates) {
  return group.stages.empty() || std::find(group.stages.begin(), group.stages.end(),
                                           coordinates[plan::Axis::kPipeline]) != group.stages.end();
}

}  // namespace

bool hosts_have_nvlink(const Machine& machine) {
  if (machine.fabric.gpus_per_domain() < 2) return true;  // nothing inside the host to talk to
  return machine.router.path(0, 1).kind == topology::PathKind::kNvlink;
}

bool hosts_have_nvswitch(const topology::Fabric& fabric) {
  if (!fabric.host.to_domain.empty()) return true;
  const auto end = fabric.devices.begin() + fabric.host.devices;
  return std::any_of(fabric.devices.begin(), end, [](const topology::Device& d) { return d.kind == topology::DeviceKind::kNvswitch; });
}

// A link of its own for every pair, and more than two GPUs.
collective::Wiring wiring_of_hosts(const Machine& machine) {
  const std::uint32_t gpus = machine.fabric.gpus_per_node;
  if (gpus < 3) return collective::Wiring::kShared;
  for (std::uint32_t other = 1; other < gpus; ++other) {
    const topology::Path path = machine.router.path(0, other);
    if (path.kind != topology::PathKind::kNvlink || path.shares.size() != 1) return collective::Wiring::kShared;
  }
  return collective::Wiring::kFullMesh;
}

GroupTable::GroupTable(const plan::Plan& plan, const Machine& machine) : fabric_{machine.fabric} {
  const auto world = static_cast<std::uint32_t>(plan.world_size());
  const bool nvlink = hosts_have_nvlink(machine);
  const bool nvswitch = hosts_have_nvswitch(machine.fabric);
  const collective::Wiring wiring = wiring_of_hosts(machine);
  index_of_.assign(plan.groups.size(), std::vector<std::uint32_t>(world, kNone));
  for (std::uint32_t g = 0; g < plan.groups.size(); ++g) {
    const plan::GroupId group{g};
    for (std::uint32_t r = 0; r < world; ++r) {
      const plan::PerAxis coordinates = plan.coordinates(RankId{r});
      if (index_of_[g][r] != kNone || !takes_part(plan.groups[g], coordinates)) continue;
      Communicator communicator{.group = group, .stage = 0, .members = plan.members(group, RankId{r}), .layout = {}};
      communicator.stage = plan.coordinates(communicator.members.front())[plan::Axis::kPipeline];
      communicator.layout = {.ranks = communicator.members.size(),
                             .hosts = count_hosts(communicator.members, machine.fabric),
                             .nvlink = nvlink,
                             .nvswitch = nvswitch,
                             .wiring = wiring};
      for (const RankId member : communicator.members) {
        index_of_[g][member.index()] = static_cast<std::uint32_t>(communicators_.size());
      }
      communicators_.push_back(std::move(communicator));
    }
  }
}

std::vector<collective::Member> GroupTable::members_on_hosts(std::uint32_t index) const {
  std::vector<collective::Member> members;
  for (const RankId rank : communicators_[index].members) {
    members.push_back({.gpu = rank.value(), .node = fabric_.domain_of(rank.value())});
  }
  return members;
}

}  // namespace stepcast::run
