// models/collective/parameters.hpp — the constants of NCCL's own cost model: the prior until a
// cluster is calibrated.
// Source   NVIDIA/nccl src/graph/tuning (base and hardware latencies, LL bandwidth ceilings), as
//          collected in the catalogue's hardware table; LL and LL128 wire formats: NCCL device code
//          (LL: 4 B data + 4 B flag; LL128: 120 B data in 128 B lines).
// Ignores  NVLS, CollNet/SHARP and PAT (separate algorithms), per-channel bandwidth ceilings
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "sim/base/units.hpp"

namespace stepcast::collective {

enum class Algorithm : std::uint8_t { kRing, kTree, kPairwise };
inline constexpr std::size_t kAlgorithmCount = 3;
enum class Protocol : std::uint8_t { kLl, kLl128, kSimple };
inline constexpr std::size_t kProtocolCount = 3;

template <class T>
using PerProtocol = std::array<T, kProtocolCount>;  // index: Protocol

struct Parameters {
  // Per call: kernel launch and connection set-up [s].
  PerProtocol<double> ring_base_s{6.6e-6, 14e-6, 8.4e-6};
  PerProtocol<double> tree_base_s{6.8e-6, 14e-6, 8.4e-6};
  // Per step over one hop [s].
  PerProtocol<double> ring_nvlink_s{0.6e-6, 1.9e-6, 3.4e-6};
  PerProtocol<double> ring_pcie_s{1.0e-6, 2.5e-6, 5.7e-6};
  PerProtocol<double> ring_network_s{2.7e-6, 4.0e-6, 14e-6};
  PerProtocol<double> tree_nvlink_s{0.6e-6, 1.25e-6, 4.0e-6};
  PerProtocol<double> tree_pcie_s{1.0e-6, 1.9e-6, 4.0e-6};
  PerProtocol<double> tree_network_s{5.0e-6, 8.5e-6, 14e-6};
  double network_overhead_s = 1.0e-6;  // per message and step on the network (Intel hosts; AMD: 2 us)
  double point_to_point_base_s = 8.4e-6;  // send/recv kernel: as the ring's Simple base
  // Wire bytes per payload byte.
  PerProtocol<double> wire_factor{2.0, 128.0 / 120.0, 1.0};
  double tree_wire_factor = 1.0 / 0.92;  // NCCL rates a tree at 92 % of a ring's bandwidth
  // LL moves data through registers and flags: ceiling of its payload rate [B/s] within a node
  // (Ampere's 87.7 GB/s) and across nodes (19 GB/s for more than two).
  double ll_ceiling_intra = 87.7e9;
  double ll_ceiling_inter = 19e9;
};

}  // namespace stepcast::collective
