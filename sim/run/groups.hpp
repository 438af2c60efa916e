// sim/run/groups.hpp — the communicators of a plan: every group's instances, their members and how
// they lie on the hosts. Worker r sits on GPU r of the cluster (rank order is placement order). Hosts of one
// NVLink domain are one host here, as for NCCL (MNNVL): its rings, trees and NVLS end where NVLink does.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "models/collective/cost.hpp"
#include "models/collective/edges.hpp"
#include "sim/plan/plan.hpp"
#include "sim/run/machine.hpp"

namespace stepcast::run {

struct Communicator {
  plan::GroupId group;
  std::int32_t stage = 0;        // pipeline stage of its first member
  std::vector<RankId> members;   // coordinate order
  collective::Layout layout;
  scenario::TrafficAxis axis = scenario::TrafficAxis::kData;  // whose traffic it is
  std::uint32_t network = 0;     // of Fabric::networks that joins its hosts; several: the cluster's own
};

// How a call is made: what its edges depend on.
struct Way {
  collective::Algorithm algorithm = collective::Algorithm::kRing;
  std::optional<plan::VolumesId> volumes{};
  friend auto operator<=>(const Way&, const Way&) = default;
};

// Whose traffic a group's is: by the purpose of its first collective in the programs; of a group without any, data's.
std::vector<scenario::TrafficAxis> axes_of_groups(const plan::Plan& plan);

// Without those that cross another network than the communicator's.
std::vector<collective::Edge> on_network(std::vector<collective::Edge> edges, const Machine& machine, const Communicator& communicator);

// Between the GPUs of a host: NVLink at all, and a switch that all of them share.
bool hosts_have_nvlink(const Machine& machine);
bool hosts_have_nvswitch(const topology::Fabric& fabric);
// NICs of one network beside those of the members that are on the first one's host (its NVLink domain).
std::size_t nics_beside(const std::vector<RankId>& members, const topology::Fabric& fabric, std::uint32_t network);
// Direct links between the GPUs of a host; empty where there is a switch, or only PCIe.
collective::HostMesh mesh_of_hosts(const Machine& machine);

class GroupTable {
 public:
  // Keeps references to the plan and the machine's fabric. Cost O(groups * workers).
  GroupTable(const plan::Plan& plan, const Machine& machine);

  [[nodiscard]] std::size_t size() const { return communicators_.size(); }
  [[nodiscard]] const Communicator& communicator(std::uint32_t index) const { return communicators_[index]; }
  // Index of the communicator of `group` that `rank` belongs to. Requires: it belongs to one.
  [[nodiscard]] std::uint32_t index_of(plan::GroupId group, RankId rank) const {
    return index_of_[group.index()][rank.index()];
  }
  [[nodiscard]] std::vector<collective::Member> members_on_hosts(std::uint32_t index) const;
  // Who sends to whom when the communicator runs the algorithm. Cost as collective::edges_of.
  [[nodiscard]] std::vector<collective::Edge> edges(std::uint32_t index, const Way& way) const;
  // A message of one worker to another, which PXN takes along the receiver's rail where hosts have NVLink.
  [[nodiscard]] std::vector<collective::Edge> message_edges(RankId from, RankId to) const;

 private:
  const plan::Plan& plan_;
  const topology::Fabric& fabric_;
  bool relays_;
  collective::HostMesh mesh_;
  std::vector<Communicator> communicators_;
  std::vector<std::vector<std::uint32_t>> index_of_;  // [group][rank]
};

}  // namespace stepcast::run
