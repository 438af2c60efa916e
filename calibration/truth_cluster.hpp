// calibration/truth_cluster.hpp — the hardware that a published run names, found in the catalogue: the
// node that has these GPUs on that interconnect, and NICs that add up to the stated rate.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "topologies/hardware.hpp"

namespace stepcast::calibration {

struct TruthClusterRequest {
  std::string gpu;                              // a name or alias of the catalogue
  std::optional<double> gpu_memory_gb;          // tells parts of one name apart (A100 40 or 80)
  std::int64_t gpus = 0;
  std::optional<std::int64_t> gpus_per_node;
  std::string intra_node;                       // words: "NVLink3+NVSwitch", "PCIe5 (no NVLink)"
  std::string inter_node;                       // words: "8x HDR IB 200G", "RoCE 1600 Gbps per node"
  std::optional<double> node_gbit_per_s;        // sum of the NICs' rates, one direction
};

struct TruthCluster {
  std::string yaml;                             // the keys of `cluster:`, two spaces in
};

// Adds what the request does not state to `assumed`. Empty with `refusal` set when nothing fits.
std::optional<TruthCluster> place(const topology::Catalogue& catalogue, const TruthClusterRequest& request,
                                  std::vector<std::string>& assumed, std::string& refusal);

}  // namespace stepcast::calibration
