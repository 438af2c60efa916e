// topologies/graph_network.hpp — a network of any shape between the hosts: switches and links as given.
// Model    a NIC meets one switch; ideal routing takes the shortest paths by links (graph_paths.hpp).
//          Switches are called leaf, spine or core by their distance from the nearest NIC: 1, 2, 3 and more.
//          Latency of a link, where none is given: half the NIC-to-NIC latency at a NIC, one switch latency on
//          leaving a switch.
// Ignores  cable length, ports left over, limits on the ports of a switch
// Tests    unit/explicit_network_test, unit/direct_networks_test
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "topologies/fabric.hpp"
#include "topologies/hardware.hpp"

namespace stepcast::topology {

// Parallel links alike; rate and latency default to the NIC's.
struct GraphLinks {
  std::uint32_t count = 1;
  std::optional<Bandwidth> rate;
  std::optional<Duration> latency;
};

struct GraphNetwork {
  struct Cable {               // between two switches
    std::uint32_t a = 0;
    std::uint32_t b = 0;
    GraphLinks links;
  };
  struct Attachment {          // of one NIC, by place of the node among the network's * nics + NIC
    std::uint32_t to = 0;
    GraphLinks links;
  };
  std::vector<std::string> switches;
  bool is_cables = false;      // the switches are cables from card to card: no latency, no hop
  std::vector<Cable> cables;
  std::vector<Attachment> attachments;
};

// Adds one of fabric.networks to a fabric that has its hosts and ports for all NICs. Requires: an attachment for every
// NIC of the network's nodes, no pair of switches twice.
void add_graph_network(Fabric& fabric, NetworkPart& part, const Nic& nic, const GraphNetwork& network);

}  // namespace stepcast::topology
