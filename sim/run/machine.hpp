// sim/run/machine.hpp — the resolved cluster a plan runs on: graph, routes, device model, collective
// constants. References only; everything named here outlives the simulation.
#pragma once

#include <optional>
#include <vector>

#include "models/collective/cost.hpp"
#include "models/gpu/gpu_model.hpp"
#include "models/network/transport_cost.hpp"
#include "sim/base/units.hpp"
#include "sim/run/path_rules.hpp"
#include "topologies/fabric.hpp"
#include "topologies/routing.hpp"

namespace stepcast::run {

struct Machine {
  const topology::Fabric& fabric;
  const topology::Router& router;
  const gpu::GpuModel& gpu;             // every worker's
  collective::Parameters collectives;   // between hosts: of the cluster's own network
  collective::Forced forced;            // algorithm and protocol that the user chose
  Bytes communicator_bytes;             // NCCL buffers on each GPU
  Bytes library_workspace{};            // of matrix libraries, taken from the framework's allocator
  std::optional<Bytes> device_memory{}; // empty: no limit
  bool expandable_segments = false;     // of the framework's allocator
  Bytes context{};                      // CUDA context and libraries' code
  // Host time to issue a collective, a send or a receive.
  Duration communication_launch;
  PathRules paths;                      // how flows get their links, and what fails when
  network::TransportCosts transports{};  // what messages and sockets cost
  std::vector<collective::NetworkParameters> side_networks{};  // of Fabric::networks after the first

  [[nodiscard]] collective::Parameters collectives_on(std::uint32_t network) const {
    collective::Parameters parameters = collectives;
    if (network > 0 && network <= side_networks.size()) parameters.network = side_networks[network - 1];
    return parameters;
  }
};

}  // namespace stepcast::run
