// topologies/routing.hpp — paths between GPUs under ideal (evenly spread, equal-cost) routing.
// Hashing, pinning and adaptive routing are separate policies over the same graph.
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

  // Path from one GPU to another by global GPU index. `nic_index`: leave and enter the hosts through
  // NIC number nic_index % nics of the node instead of the GPU's nearest (rail rotation of rings).
  // Cost: near O(hops), cached by endpoint class; 200,000 different paths take well under a second.
  [[nodiscard]] Path path(std::uint32_t from_gpu, std::uint32_t to_gpu) const;
  [[nodiscard]] Path path_through_nic(std::uint32_t from_gpu, std::uint32_t to_gpu, std::uint32_t nic_index) const;
  // NICs per node.
  [[nodiscard]] std::uint32_t nics_per_node() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stepcast::topology
