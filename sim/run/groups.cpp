#include "sim/run/groups.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <utility>
#include <variant>

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

// The network that joins all hosts of the group, or the first where they need several.
std::uint32_t network_of(const std::vector<RankId>& members, const Machine& machine, scenario::TrafficAxis axis) {
  if (machine.fabric.networks.size() < 2) return 0;
  std::optional<std::uint32_t> network;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const std::uint32_t from = members[i].value();
    const std::uint32_t to = members[(i + 1) % members.size()].value();
    if (machine.fabric.domain_of(from) == machine.fabric.domain_of(to)) continue;
    const std::uint32_t pair = machine.router.network_between(from, to, axis);
    if (network && *network != pair) return 0;
    network = pair;
  }
  return network.value_or(0);
}

scenario::TrafficAxis axis_of(plan::Purpose purpose) {
  switch (purpose) {
    case plan::Purpose::kTensor: return scenario::TrafficAxis::kTensor;
    case plan::Purpose::kPipeline: return scenario::TrafficAxis::kPipeline;
    case plan::Purpose::kData: return scenario::TrafficAxis::kData;
    case plan::Purpose::kExpert: return scenario::TrafficAxis::kExpert;
    case plan::Purpose::kContext: return scenario::TrafficAxis::kContext;
    case plan::Purpose::kOffload: return scenario::TrafficAxis::kData;
  }
  return scenario::TrafficAxis::kData;
}

}  // namespace

std::vector<scenario::TrafficAxis> axes_of_groups(const plan::Plan& plan) {
  std::vector<std::optional<scenario::TrafficAxis>> found(plan.groups.size());
  for (const plan::Program& program : plan.programs) {
    for (const plan::Instruction& instruction : program.instructions) {
      const auto* collective = std::get_if<plan::Collective>(&instruction.body);
      if (collective == nullptr) continue;
      std::optional<scenario::TrafficAxis>& axis = found[collective->group.index()];
      if (!axis) axis = axis_of(collective->purpose);
    }
  }
  std::vector<scenario::TrafficAxis> axes;
  for (const auto& axis : found) axes.push_back(axis.value_or(scenario::TrafficAxis::kData));
  return axes;
}

std::vector<collective::Edge> on_network(std::vector<collective::Edge> edges, const Machine& machine, const Communicator& communicator) {
  if (machine.fabric.networks.size() > 1) {
    std::erase_if(edges, [&](const collective::Edge& edge) {
      return machine.fabric.domain_of(edge.from) != machine.fabric.domain_of(edge.to) &&
             machine.router.network_between(edge.from, edge.to, communicator.axis) != communicator.network;
    });
  }
  return edges;
}

bool hosts_have_nvlink(const Machine& machine) {
  if (machine.fabric.gpus_per_domain() < 2) return true;  // nothing inside the host to talk to
  return machine.router.path(0, 1).kind == topology::PathKind::kNvlink;
}

bool hosts_have_nvswitch(const topology::Fabric& fabric) {
  if (!fabric.host.to_domain.empty()) return true;
  const auto end = fabric.devices.begin() + fabric.host.devices;
  return std::any_of(fabric.devices.begin(), end, [](const topology::Device& d) { return d.kind == topology::DeviceKind::kNvswitch; });
}

std::size_t nics_beside(const std::vector<RankId>& members, const topology::Fabric& fabric, std::uint32_t network) {
  std::set<std::pair<std::uint32_t, std::uint32_t>> nics;  // node, local NIC
  for (const RankId member : members) {
    const std::uint32_t gpu = member.value();
    if (fabric.domain_of(gpu) != fabric.domain_of(members.front().value())) continue;
    for (const std::uint32_t nic : fabric.networks[network].nics_of_gpu[gpu % fabric.gpus_per_node]) nics.emplace(gpu / fabric.gpus_per_node, nic);
  }
  return std::max<std::size_t>(1, nics.size());
}

collective::HostMesh mesh_of_hosts(const Machine& machine) {
  if (hosts_have_nvswitch(machine.fabric)) return {};
  const std::uint32_t gpus = machine.fabric.gpus_per_node;
  collective::HostMesh mesh{.gpus = gpus, .links = std::vector<double>(std::size_t{gpus} * gpus, 0.0)};
  bool any = false;
  for (std::uint32_t a = 0; a < gpus; ++a) {
    for (std::uint32_t b = 0; b < gpus; ++b) {
      if (a == b) continue;
      const topology::Path path = machine.router.path(a, b);
      if (path.kind != topology::PathKind::kNvlink || path.shares.size() != 1) continue;  // relayed, or through a switch
      mesh.links[std::size_t{a} * gpus + b] = machine.fabric.bundles[path.shares.front().bundle].capacity.si();
      any = true;
    }
  }
  return any ? mesh : collective::HostMesh{};
}

GroupTable::GroupTable(const plan::Plan& plan, const Machine& machine)
    : plan_{plan}, fabric_{machine.fabric}, relays_{hosts_have_nvlink(machine)}, mesh_{mesh_of_hosts(machine)} {
  const auto world = static_cast<std::uint32_t>(plan.world_size());
  const bool nvlink = relays_;
  const bool nvswitch = hosts_have_nvswitch(machine.fabric);
  const std::vector<scenario::TrafficAxis> axes = axes_of_groups(plan);
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
                             .nvswitch = nvswitch};
      communicator.axis = axes[g];
      communicator.network = network_of(communicator.members, machine, communicator.axis);
      communicator.layout.nics = nics_beside(communicator.members, machine.fabric, communicator.network);
      for (const RankId member : communicator.members) {
        index_of_[g][member.index()] = static_cast<std::uint32_t>(communicators_.size());
      }
      communicators_.push_back(std::move(communicator));
    }
  }
}

std::vector<collective::Edge> GroupTable::edges(std::uint32_t index, const Way& way) const {
  const std::vector<collective::Member> members = members_on_hosts(index);
  if (!way.volumes) return collective::edges_of(way.algorithm, members, mesh_);
  return collective::edges_of(way.algorithm, members, mesh_, {plan_.volumes[way.volumes->index()], members.size()});
}

std::vector<collective::Edge> GroupTable::message_edges(RankId from, RankId to) const {
  const std::uint32_t domain = fabric_.domain_of(from.value());
  const std::uint32_t gpus = fabric_.gpus_per_domain();
  const std::uint32_t proxy = domain * gpus + to.value() % gpus;
  if (!relays_ || domain == fabric_.domain_of(to.value()) || proxy == from.value()) return {{from.value(), to.value(), 1.0}};
  return {{from.value(), proxy, 1.0}, {proxy, to.value(), 1.0}};
}

std::vector<collective::Member> GroupTable::members_on_hosts(std::uint32_t index) const {
  std::vector<collective::Member> members;
  for (const RankId rank : communicators_[index].members) {
    members.push_back({.gpu = rank.value(), .node = fabric_.domain_of(rank.value())});
  }
  return members;
}

}  // namespace stepcast::run
