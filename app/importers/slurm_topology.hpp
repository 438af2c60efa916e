// app/importers/slurm_topology.hpp — Slurm's topology.conf (tree and block) and topology.yaml.
// Form     SwitchName= with Nodes= or Switches=; BlockName= Nodes=, BlockSizes=; keys without case, host lists with
//          ranges, # comments. YAML: a list of topologies, each a tree, block, flat, ring or torus3d.
// Model    neither form says how fast a link is, how many there are, or which NIC is where: all NICs of a host
//          on its switch, and as many links upwards as NICs below (1:1), which the file written says.
//          Blocks are switches below one that joins them, likewise assumed. Trees that nothing joins: the largest.
// Source   ../shared/formats.md section 3.3; topology.conf(5), topology.yaml(5)
// Ignores  LinkSpeed (Slurm does, too), BlockSizes, flat, ring and torus3d topologies (said)
// Tests    unit/slurm_topology_test
#pragma once

#include <string>
#include <vector>

#include "app/importers/imported_network.hpp"
#include "sim/base/diagnostic.hpp"

namespace stepcast::app {

struct SlurmSwitch {
  std::string name;
  std::vector<std::string> nodes;
  std::vector<std::string> switches;
  SourcePosition at;
};

struct SlurmTopology {
  std::string name;                     // of a YAML topology
  std::vector<SlurmSwitch> switches;
  std::vector<SlurmSwitch> blocks;
  std::string block_sizes;
  std::vector<std::string> remarks;
  [[nodiscard]] std::size_t nodes_on_switches() const;
  [[nodiscard]] std::size_t nodes_in_blocks() const;
};

// YAML when the file's name ends so. Throws UserError with line and column.
SlurmTopology read_slurm_topology(const std::string& text, const std::string& file);

// Throws UserError for switches that do not make a tree.
ImportedNetwork network_of(const SlurmTopology& topology, std::int64_t nics_per_node);

}  // namespace stepcast::app
