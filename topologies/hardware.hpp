// topologies/hardware.hpp — catalogue entries as plain structs: GPUs, NICs, nodes. Every figure
// carries where it came from. Rates are dense (no sparsity) and per direction.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/units.hpp"

namespace stepcast::topology {

enum class Basis : std::uint8_t { kMeasured, kDatasheet, kPublished, kAssumed };
constexpr std::array<std::pair<const char*, Basis>, 4> enum_words(Basis) {
  return {{{"measured", Basis::kMeasured},
           {"datasheet", Basis::kDatasheet},
           {"published", Basis::kPublished},
           {"assumed", Basis::kAssumed}}};
}

// A quoted figure: its value, what kind of evidence it is, where it stands, and, where that is known, one
// standard deviation in the value's unit and the day of the evidence.
template <class T>
struct Figure {
  T value{};
  Basis basis = Basis::kAssumed;
  std::string source;
  std::optional<T> plus_minus{};
  std::optional<std::string> date{};  // 2026-11-30
};

struct Gpu {
  std::string name;                        // catalogue key, e.g. h100-sxm
  std::string title;                       // "NVIDIA H100 SXM5 80 GB"
  std::vector<std::string> aliases;        // other spellings, e.g. H100-SXM, A100-SXM
  std::string architecture;                // "9.0", "gfx942"
  Figure<Bytes> memory;                    // nominal: "80 GB" parts carry 80 GiB of DRAM
  std::optional<Figure<Bytes>> usable_memory;  // what the driver reports as the device's total
  Figure<Bandwidth> memory_bandwidth;
  std::optional<Figure<Bytes>> l2;
  Figure<std::int64_t> sm_count;
  std::optional<Figure<Frequency>> base_clock;
  std::optional<Figure<Frequency>> boost_clock;
  std::optional<Figure<Frequency>> tensor_clock;  // clock at which the quoted tensor rate holds
  std::optional<Figure<FlopRate>> fp32;
  std::optional<Figure<FlopRate>> tf32;
  std::optional<Figure<FlopRate>> fp16;
  std::optional<Figure<FlopRate>> bf16;
  std::optional<Figure<FlopRate>> fp8;
  std::optional<Figure<FlopRate>> fp4;
  std::optional<Figure<FlopRate>> int8;           // operations counted as FLOPs
  std::optional<Figure<FlopRate>> matmul_bf16;    // best matrix product that a search found
  std::optional<Figure<FlopRate>> matmul_fp8;
  Figure<Power> power_limit;
  std::optional<Figure<Bandwidth>> scale_up; // NVLink, XGMI: per direction, all links of one GPU
  std::int64_t pcie_generation = 4;

  // What programs can have: the driver's figure where known, else the nominal one.
  [[nodiscard]] const Figure<Bytes>& device_memory() const { return usable_memory ? *usable_memory : memory; }
};

enum class Transport : std::uint8_t { kInfiniBand, kRoce, kTcp, kUec };

struct Nic {
  std::string name;                        // ib-ndr-400, roce-100, eth-10
  std::string title;
  std::vector<std::string> aliases;
  Transport transport = Transport::kInfiniBand;
  Figure<Bandwidth> line_rate;             // per direction
  Figure<double> efficiency;               // payload over line rate that a large message reaches
  Figure<Duration> latency;                // NIC to NIC through no switch, one way
  Figure<Duration> switch_latency;         // per switch hop
  Figure<std::int64_t> leaf_ports;         // down-ports of the usual leaf switch at this rate
};

enum class Interconnect : std::uint8_t { kNvswitch, kNvlinkMesh, kPcie };

// NVLink or xGMI between two GPUs of a node without switches.
struct MeshLink {
  std::int64_t a = 0;
  std::int64_t b = 0;
  std::int64_t links = 1;                  // parallel links of this pair
};

struct Node {
  std::string name;                        // dgx-h100
  std::string title;
  std::vector<std::string> aliases;
  std::string gpu;                         // catalogue name
  std::int64_t gpus = 8;
  Interconnect interconnect = Interconnect::kNvswitch;
  std::optional<Figure<double>> scale_up_efficiency;  // payload over raw rate of the GPU-GPU links; none: PCIe only
  std::optional<Figure<Duration>> scale_up_latency;   // GPU to GPU, one way
  std::vector<MeshLink> mesh;              // nvlink-mesh only; empty: every pair, alike
  std::optional<Figure<std::int64_t>> nvlink_domain;  // hosts whose GPUs share one NVSwitch fabric; none: each its own
  std::string nic;                         // default NIC
  std::int64_t nics = 8;
  std::int64_t pcie_generation = 5;
  Figure<Bandwidth> pcie_bandwidth;        // x16, per direction, effective
  Figure<Duration> pcie_latency;           // each PCIe link on the way, one way
  std::optional<Figure<Bandwidth>> pcie_uplink;    // PCIe switch to CPU, where slower than pcie_bandwidth
  std::optional<Figure<Bandwidth>> gpu_host_link;  // NVLink-C2C instead of PCIe, per GPU and direction
  std::int64_t gpus_per_pcie_switch = 2;   // 0: each GPU has a root port (or C2C) of its own
  bool peer_to_peer = true;                // false: PCIe traffic between GPUs, and GPU and NIC, bounces through host memory
  std::int64_t sockets = 2;
  std::optional<Figure<Bandwidth>> socket_link;  // UPI / xGMI between two sockets, per direction; none: not joined
  std::optional<Figure<Duration>> socket_latency;
  Figure<std::int64_t> cpu_cores;          // whole node
  Figure<Bandwidth> dram_bandwidth;        // whole node
  Figure<Bytes> host_memory;
};

// Everything in topologies/data, by name. Looked up by name or alias.
struct Catalogue {
  std::map<std::string, Gpu> gpus;
  std::map<std::string, Nic> nics;
  std::map<std::string, Node> nodes;
};

}  // namespace stepcast::topology
