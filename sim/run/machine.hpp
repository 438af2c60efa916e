// sim/run/machine.hpp — the resolved cluster a plan runs on: graph, routes, device model, collective
// constants. References only; everything named here outlives the simulation.
#pragma once

#include <algorithm>
#include <cstdint>
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

// GPUs of another kind in some nodes.
struct OtherGpus {
  std::vector<std::uint32_t> nodes;  // in order
  const gpu::GpuModel* gpu = nullptr;
};

struct Machine {
  const topology::Fabric& fabric;
  const topology::Router& router;
  const gpu::GpuModel& gpu;             // every worker's but those of other_gpus
  collective::Parameters collectives;   // between hosts: of the cluster's own network
  collective::Forced forced;            // algorithm and protocol that the user chose
  Bytes communicator_bytes;             // NCCL buffers on each GPU
  Bytes library_workspace{};            // of matrix libraries, taken from the framework's allocator
  std::optional<Bytes> device_memory{}; // empty: no limit
  bool expandable_segments = false;     // of the framework's allocator
  Bytes context{};                      // CUDA context and libraries' code
  // Host time to issue a collective, a send or a receive.
  Duration communication_launch;
  Duration copy_launch{};               // host time to issue a copy between host and device
  Duration collective_wait{};           // from the last rank's arrival to the collective's own time
  Duration host_step{};                 // host time of a step before its first kernel
  Duration host_recompute{};            // of each block that is computed again, beside its kernels
  std::int64_t copies_per_shard = 0;    // of each rank's part of gradients before they are reduce-scattered (shard_lists.hpp)
  std::int64_t copies_per_gathered_shard = 0;  // of parameters, once they are gathered
  PathRules paths;                      // how flows get their links, and what fails when
  network::TransportCosts transports{};  // what messages and sockets cost
  std::vector<collective::NetworkParameters> side_networks{};  // of Fabric::networks after the first

  // Time of kernels beside a collective over their time alone, where it was measured; else by what the collective takes.
  std::optional<double> beside_collective{};

  std::vector<OtherGpus> other_gpus{};

  // Of a worker's GPU: 0 is `gpu`, i is other_gpus[i - 1].
  [[nodiscard]] std::size_t gpu_kinds() const { return 1 + other_gpus.size(); }
  [[nodiscard]] const gpu::GpuModel& gpu_of_kind(std::size_t kind) const { return kind == 0 ? gpu : *other_gpus[kind - 1].gpu; }
  [[nodiscard]] std::size_t gpu_kind(std::uint32_t worker) const {
    for (std::size_t i = 0; i < other_gpus.size(); ++i) {
      const std::vector<std::uint32_t>& nodes = other_gpus[i].nodes;
      if (std::binary_search(nodes.begin(), nodes.end(), worker / fabric.gpus_per_node)) return i + 1;
    }
    return 0;
  }

  [[nodiscard]] collective::Parameters collectives_on(std::uint32_t network) const {
    collective::Parameters parameters = collectives;
    if (network > 0 && network <= side_networks.size()) parameters.network = side_networks[network - 1];
    return parameters;
  }
};

}  // namespace stepcast::run
