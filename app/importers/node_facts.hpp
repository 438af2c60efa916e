// app/importers/node_facts.hpp — what a description of one machine says of it, in whatever form it came, and
// the node that our catalogue's form makes of it.
// Model    what the file says is taken from it; every other figure from a node of the catalogue that is like it,
//          and the file written says so. The form holds evenly built machines: what differs is said in `remarks`.
// Ignores  PCIe link speeds of virtual machines (made up there); NICs of another rate than most; affinities
// Tests    unit/nccl_topology_test, unit/smi_topology_test
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "topologies/hardware.hpp"

namespace stepcast::app {

struct GpuFact {
  std::string name;                                  // "GPU0", a bus id
  std::optional<std::string> model;                  // catalogue name, where the file tells
  std::optional<std::uint32_t> cpu;
  std::optional<std::uint32_t> pcie_switch;          // topmost bridge above it, numbered through the machine
  std::uint32_t switch_links = 0;                    // NVLinks to NVSwitches
  std::vector<std::pair<std::uint32_t, std::uint32_t>> peer_links;  // GPU, NVLinks to it
};

struct NicFact {
  std::string name;
  std::optional<Bandwidth> rate;
  std::optional<topology::Transport> transport;
  std::optional<std::uint32_t> cpu;
  std::optional<std::uint32_t> pcie_switch;
};

struct NodeFacts {
  std::vector<GpuFact> gpus;
  std::vector<NicFact> nics;
  std::uint32_t cpus = 0;
  std::optional<std::uint32_t> pcie_generation;      // of the GPUs, where the file is to be believed
  bool tells_nvlink = false;                         // the file would name NVLinks if there were some
  std::vector<std::string> remarks;                  // what was left out, made up or not understood
};

struct NodeChoices {
  std::optional<std::string> gpu;                    // overrides and what the file does not say
  std::optional<std::string> nic;
  std::optional<std::string> like;
};

struct ImportedNode {
  topology::Node node;
  std::string like;                                  // the node of the catalogue that lent the other figures
  std::vector<std::string> from_file;                // keys taken from the file
  std::vector<std::string> remarks;
};

// Throws UserError when the file tells no GPUs, or not which, and no choice does.
ImportedNode describe_node(const NodeFacts& facts, const topology::Catalogue& catalogue, const NodeChoices& choices, const std::string& file);

// The node as a file in the catalogue's form, with a heading that says what came from where.
std::string imported_node_text(const ImportedNode& imported, const std::string& kind, const std::string& file);

}  // namespace stepcast::app
