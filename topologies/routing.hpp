// topologies/routing.hpp — paths between GPUs under ideal (evenly spread, equal-cost) routing.
// Model    the shortest path by links between way-points (GPU, host memory where data bounce, NIC); a
//          share splits evenly over all links on shortest paths. Of several networks a path takes one: the
//          preferred (side_networks.hpp) for its traffic that joins both nodes
// Ignores  congestion, hash collisions, PCIe lanes narrower than x16, cable length
// Tests    unit/topology_routing_test (by hand), property/topology_property_test (graph search as oracle)
// Hashing, pinning and adaptive routing are separate policies over the same graph (next_hops.hpp); crossing()
// gives them the ends.
#pragma once

#include <cstdint>
#include <memory>

#include "topologies/fabric.hpp"

namespace stepcast::topology {

class Router {
 public:
  // Keeps a reference: `fabric` must outlive the router.
  explicit Router(const Fabric& fabric);
  ~Router();
  Router(Router&&) noexcept;
  Router& operator=(Router&&) = delete;

  // Path from one GPU to another by global GPU index. Inside a node: NVLink where there is one (directly,
  // through a switch, or through one other GPU of a mesh), else PCIe. Inside an NVLink domain of several
  // nodes: its switch. Between nodes else: over the GPU's own
  // NICs, evenly when it has several. `nic_index`: leave and enter the hosts through NIC number
  // nic_index % nics of the node instead (rail rotation of rings): the data cross NVLink to the GPU
  // beside that NIC where they can (NCCL's PXN), else PCIe. Boxes joined card to card whose cards of that
  // number do not meet use the cables that there are.
  // Requires: a network when the GPUs are on different nodes and domains.
  // Cost: O(hops), about a microsecond; nothing is cached or mutated, so threads may share a router.
  // `axis`: whose traffic it is, which decides where there are several networks.
  using Axis = std::optional<scenario::TrafficAxis>;
  [[nodiscard]] Path path(std::uint32_t from_gpu, std::uint32_t to_gpu, Axis axis = std::nullopt) const;
  void path(std::uint32_t from_gpu, std::uint32_t to_gpu, Path& into, Axis axis = std::nullopt) const;  // the same, memory reused
  // On the cluster's own network.
  [[nodiscard]] Path path_through_nic(std::uint32_t from_gpu, std::uint32_t to_gpu, std::uint32_t nic_index) const;
  // From a GPU to the memory of its socket, or back.
  enum class HostWay : std::uint8_t { kToHost, kFromHost };
  void host_path(std::uint32_t gpu, HostWay way, Path& into) const;
  // The same path with its network part left open: what lies inside the hosts, and which ports the ways join.
  struct Crossing {
    struct Way {
      std::uint32_t from_port = 0;  // index into Fabric::ports
      std::uint32_t to_port = 0;
      double weight = 1.0;
    };
    std::vector<Path::Share> inside;  // sorted by bundle
    std::vector<Way> ways;            // none inside a node or NVLink domain
  };
  [[nodiscard]] Crossing crossing(std::uint32_t from_gpu, std::uint32_t to_gpu, Axis axis = std::nullopt) const;
  // Index into Fabric::networks. Requires: GPUs that no NVLink domain or node joins.
  [[nodiscard]] std::uint32_t network_between(std::uint32_t from_gpu, std::uint32_t to_gpu, Axis axis) const;
  // NICs per node, of all networks.
  [[nodiscard]] std::uint32_t nics_per_node() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stepcast::topology
