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

// Cards of one network in a host. Each port of a card that has several is a NIC of its own behind its share of the
// card's PCIe link.
struct HostCards {
  std::uint32_t cards = 0;
  std::uint32_t ports = 1;  // of a card
};

// Fills `fabric` with `nodes` equal hosts, fabric.host with their shape and the NICs of fabric.networks (named, else
// empty), which have these cards. Hosts have the cards of all networks; Fabric::ports says which are there.
void add_hosts(Fabric& fabric, const ClusterHardware& hardware, std::uint32_t nodes, std::span<const HostCards> cards);

// Puts `names` (by node, without '/') in place of node0, node1, ... in the names of the hosts' devices.
void name_hosts(Fabric& fabric, std::span<const std::string> names);

}  // namespace stepcast::topology
