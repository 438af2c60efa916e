// models/collective/parameters.hpp — what the cost model of collectives needs to know of a machine. The
// defaults are NCCL's own constants (nccl_constants.hpp), the prior until a cluster is calibrated.
// Symbols  LL moves 4 B of data with 4 B of flag, LL128 120 B in lines of 128, Simple bare data.
// Source   NVIDIA/nccl src/graph/tuning.cc, versions 2.26 and 2.27; wire formats: NCCL device code
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

#include "sim/base/units.hpp"

namespace stepcast::collective {

// kPairwise: all pairs of ranks at once (all-to-all). kShift: each rank to the next one (send and receive). kPxn and kPxnShift:
// the same by way of the GPU that is on the receiver's rail (pxn_edges.cpp). kHierarchical: inside hosts, then between them,
// then inside again; kTwoStep: all-to-all inside hosts, then along the rails (hierarchical_edges.cpp).
enum class Algorithm : std::uint8_t { kRing, kTree, kNvls, kNvlsTree, kCollNet, kPat, kPairwise, kShift, kPxn, kPxnShift, kHierarchical, kTwoStep };
inline constexpr std::size_t kAlgorithmCount = 12;
enum class Protocol : std::uint8_t { kLl, kLl128, kSimple };
inline constexpr std::size_t kProtocolCount = 3;

std::string_view name_of(Algorithm algorithm);  // "ring", "nvls-tree", ...
std::string_view name_of(Protocol protocol);    // "LL", "LL128", "Simple"

template <class T>
using PerProtocol = std::array<T, kProtocolCount>;  // index: Protocol

inline constexpr double kNoCeiling = std::numeric_limits<double>::infinity();

// Pipelines of Simple fill before they run: the first `share` of each byte up to `bytes` in all; between hosts, for each NIC.
struct Fill {
  double share = 0.0;
  double bytes = 0.0;
  friend bool operator==(const Fill&, const Fill&) = default;
};

// Inside a host.
struct LocalParameters {
  PerProtocol<double> ring_base_s{6.6e-6, 14e-6, 8.4e-6};   // per call
  PerProtocol<double> tree_base_s{6.8e-6, 14e-6, 8.4e-6};
  PerProtocol<double> ring_nvlink_s{0.6e-6, 1.9e-6, 3.4e-6};  // per step over one hop
  PerProtocol<double> ring_pcie_s{1.0e-6, 2.5e-6, 5.7e-6};
  PerProtocol<double> tree_nvlink_s{0.6e-6, 1.25e-6, 4.0e-6};
  PerProtocol<double> tree_pcie_s{1.0e-6, 1.9e-6, 4.0e-6};
  // Share of what the links between the GPUs carry that the kernels reach.
  PerProtocol<double> efficiency{1.0, 1.0, 1.0};
  double ll_ceiling = 87.7e9;                // payload [B/s]
  double ll128_channel_ceiling = 20e9;       // payload [B/s] per channel
  double nvls_s = 25e-6;                     // NVLink SHARP: per call
  double nvls_efficiency = 0.85;
  double pairwise_ll_base_s = 8.4e-6;        // grouped send and receive
  double pairwise_simple_base_s = 8.4e-6;
  double pairwise_ll_ceiling = 40e9;         // payload [B/s]
  double pairwise_efficiency = 1.0;
  double pair_ceiling = kNoCeiling;          // payload [B/s] from one GPU to one other over PCIe: NCCL gives a peer few channels
  // [B/s] at which a GPU's channels copy or sum what it keeps itself, while nothing of theirs is on a link.
  double own_rate = kNoCeiling;              // of a ring
  double pairwise_own_rate = kNoCeiling;     // of all-to-all
  double collnet_s = 3.7e-6;
  double collnet_arity_s = 0.4e-6;           // per further rank of the host
  Fill fill;
  friend bool operator==(const LocalParameters&, const LocalParameters&) = default;
};

// Between hosts.
struct NetworkParameters {
  PerProtocol<double> ring_s{2.7e-6, 4.0e-6, 14e-6};  // per step over the network
  PerProtocol<double> tree_s{5.0e-6, 8.5e-6, 14e-6};
  double nvls_tree_s = 14e-6;
  double collnet_s = 31e-6;
  double latency_s = 0.0;                    // of this network beyond InfiniBand's; twice for Simple, which flushes
  double overhead_s = 1.0e-6;                // per message and step (Intel hosts; AMD: 2 us)
  double ll_ceiling = 19e9;                  // payload [B/s] of a host
  double ll128_ceiling = kNoCeiling;         // the same of LL128 for each NIC: its ceiling is a channel's
  double simple_ceiling = kNoCeiling;        // of a host with Simple: transports whose host copies each byte
  double ring_plateau = 1.4;                 // latency of Simple rings once every rank has 64 B a channel
  double tree_efficiency = 0.92;
  double tree_channel_ceiling_two = kNoCeiling;   // Simple trees over two hosts: bus bandwidth of a channel [B/s]
  double tree_channel_ceiling_many = kNoCeiling;  // and over more
  Fill fill;
  friend bool operator==(const NetworkParameters&, const NetworkParameters&) = default;
};

struct Parameters {
  LocalParameters local;
  NetworkParameters network;
  std::int64_t channels = 16;
  bool nvls = false;                         // the GPUs and the switch between them can
  bool collnet = false;                      // switches that reduce: used only where the user says so
  double pat_base_s = 8e-6;
  double pat_rank_s = 2.8e-6;
  double pat_efficiency = 0.75;
  PerProtocol<double> wire_factor{2.0, 128.0 / 120.0, 1.0};  // wire bytes per payload byte
  friend bool operator==(const Parameters&, const Parameters&) = default;
};

}  // namespace stepcast::collective
