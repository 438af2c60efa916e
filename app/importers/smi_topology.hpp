// app/importers/smi_topology.hpp — the matrix that `nvidia-smi topo -m` prints.
// Form     a heading with GPU0 ... NIC0 ... (or a device's name), then a row a device: X, NV#, PIX, PXB, PHB, NODE,
//          SYS for each column, CPU and NUMA affinity after them; a legend of the NICs. Rows may be cut off.
// Model    the same NV# between all pairs of GPUs is an NVSwitch where a GPU cannot have that many links to each (18
//          at most in all), else a mesh; PIX and PXB mean the same PCIe switch
// Source   ../shared/formats.md section 2.3
// Ignores  bandwidth: the matrix has none; CPU affinity
// Tests    unit/smi_topology_test
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "app/importers/node_facts.hpp"

namespace stepcast::app {

struct SmiTopology {
  std::size_t gpus = 0;              // columns
  std::size_t nics = 0;
  std::size_t rows = 0;              // rows that are there
  std::vector<std::size_t> nearest_nic;  // by GPU row: the first NIC at its best distance
  std::string gpu_links;             // "NV18 between all pairs", "mixed"
  NodeFacts facts;
};

// Throws UserError with line and column for what is no such matrix.
SmiTopology read_smi_topology(std::string_view text, const std::string& file);

}  // namespace stepcast::app
