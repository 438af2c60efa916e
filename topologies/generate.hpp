// topologies/generate.hpp — builds the fabric of a cluster: hosts after the node's description, and a
// network after the scenario's fabric options.
// Presets
//   none             one node, no network
//   clos             two tiers; all NICs of a node on one leaf
//   rail-clos        two tiers; NIC i of the nodes of a pod on the pod's leaf i; spines join all leaves
//   rail-only        as rail-clos, but spines join only leaves of one rail; other rails over NVLink
//   clos-3tier       pods of leaves and spines, joined by cores
//   rail-clos-3tier  the same with leaves by rail
//   dual-plane       two rail-clos side by side; each NIC has a port of half its rate on either
//   meta-rack        clos-3tier of racks (leaves) of 16 ports, zones (pods) of 192 racks, 7:1 between zones
//   torus, mesh, dragonfly, direct: direct_networks.hpp
// Model    up-link capacity of a leaf = its down-link capacity / oversubscription, as ceil(down / over-
//          subscription) links of equal rate, one to each spine of the group; spines to cores alike with
//          core_oversubscription. Leaf down-ports: the option, else the NIC's usual switch (catalogue).
//          Latency: half the NIC-to-NIC latency at each end, one switch latency on leaving each switch.
// Ignores  cable length, ports left over, a limit on the ports of spines and cores (a note says when a
//          spine would need more ports than a switch of the leaf's size has)
// Several networks (cluster.networks): each NICs and switches of its own, built one after the other; routing.hpp
// says which takes what.
// Tests    unit/topology_generate_test, unit/side_networks_test, property/topology_property_test
#pragma once

#include <optional>

#include "sim/scenario/scenario.hpp"
#include "topologies/fabric.hpp"
#include "topologies/hardware.hpp"

namespace stepcast::topology {

// The cards of one network, and what of the host they need.
struct NetworkCards {
  Nic nic;
  bool gpudirect = true;                   // network cards reach GPU memory
  std::optional<Bandwidth> socket_rate{};  // payload that the node's cores move through sockets, both ways together; none: they do not have to
};

// The hardware of a cluster, names resolved and overrides applied.
struct ClusterHardware {
  Gpu gpu;
  Node node;
  Nic nic;                         // of cluster.fabric
  std::int64_t gpus_per_node = 0;  // used, at most node.gpus
  std::int64_t nvlink_domain = 1;  // nodes on one NVSwitch fabric
  bool gpudirect = true;           // of cluster.fabric, as below
  std::optional<Bandwidth> socket_rate{};
  std::vector<NetworkCards> side_networks{};  // of cluster.networks

  // Of a network by its place in Fabric::networks.
  [[nodiscard]] NetworkCards cards(std::size_t network) const {
    return network == 0 ? NetworkCards{nic, gpudirect, socket_rate} : side_networks[network - 1];
  }
};

// Throws UserError naming the key for impossible options (unknown preset, no fabric for several nodes, ...).
Fabric build_fabric(const ClusterHardware& hardware, const scenario::Cluster& cluster);

}  // namespace stepcast::topology
