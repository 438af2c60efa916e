// topologies/host_fabric.hpp — one host as a piece of fabric, and its copies.
//   NVSwitch box   GPU = NVSwitch bundle up and down; GPU - PCIe switch - root complex - host memory
//   NVLink domain  the same with one NVSwitch for the GPUs of several hosts in a row (an NVL72 rack: 18 hosts)
//   NVLink mesh    pairs of GPUs joined directly
//   PCIe box       GPUs meet over PCIe switches, root complexes and the link between sockets
// NICs hang on the PCIe switch of the GPU they serve (GPUDirect: GPU -> PCIe switch -> NIC).
#pragma once

#include <span>
#include <string>

#include "topologies/generate.hpp"

namespace stepcast::topology {

// Fills `fabric` (empty) with `nodes` equal hosts and fabric.host with their shape. Each port of a card that has
// several is a NIC of its own behind its share of the card's PCIe link.
void add_hosts(Fabric& fabric, const ClusterHardware& hardware, std::uint32_t nodes, std::uint32_t nics_per_node, std::uint32_t ports_of_nic = 1);

// Puts `names` (by node, without '/') in place of node0, node1, ... in the names of the hosts' devices.
void name_hosts(Fabric& fabric, std::span<const std::string> names);

}  // namespace stepcast::topology
