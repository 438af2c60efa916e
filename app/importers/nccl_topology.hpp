// app/importers/nccl_topology.hpp — NCCL's topology XML: NCCL_TOPO_FILE as clouds ship it, and NCCL_TOPO_DUMP_FILE.
// Form     <system version="1"> <cpu> <pci class link_speed link_width> (nested: bridges) <gpu> <nvlink>, <nic> <net>.
//          Files that clouds ship have bare <pci> elements: class 0x03 is a GPU, 0x02 a NIC, 0x0604 a bridge.
// Source   ../shared/formats.md section 2 (schema, classes, bandwidth rules); PCI device ids: pci.ids
// Ignores  affinity, guid, latency, maxconn, gdr; c2c
// Tests    unit/nccl_topology_test
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "app/importers/node_facts.hpp"

namespace stepcast::app {

struct NcclTopology {
  std::size_t cpus = 0;       // elements, as written
  std::size_t pcis = 0;
  std::size_t gpus = 0;
  std::size_t nvlinks = 0;
  std::size_t nics = 0;
  std::size_t nets = 0;
  std::size_t gpu0_nvlinks = 0;                  // counts of the first GPU's NVLinks added up
  std::map<std::string, std::size_t> pci_speeds;  // link_speed as written ("not given": no such attribute)
  std::map<std::string, std::size_t> net_speeds;  // [Mb/s] as written
  std::size_t bridges = 0;    // by PCI class
  std::size_t gpu_devices = 0;
  std::size_t nic_devices = 0;
  std::size_t unknown_devices = 0;
  NodeFacts facts;
};

// Throws UserError with line and column for what is no such file.
NcclTopology read_nccl_topology(std::string_view text, const std::string& file);

}  // namespace stepcast::app
