// topologies/hardware.hpp — catalogue entries as plain structs: GPUs, NICs, nodes. Every figure
// carries where it came from. Rates are dense (no sparsity) and per direction.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/units.hpp"

namespace stepcast::topology {

enum class Basis : std::uint8_t { kMeasured, kDatasheet, kPublished, kAssumed };

// A quoted figure: its value, what kind of evidence it is, and where it stands.
template <class T>
struct Figure {
  T value{};
  Basis basis = Basis::kAssumed;
  std::string source;
};

struct Gpu {
  std::string name;                        // catalogue key, e.g. h100-sxm
  std::string title;                       // "NVIDIA H100 SXM5 80 GB"
  std::vector<std::string> aliases;        // other spellings, e.g. H100-SXM, A100-SXM
  std::string architecture;                // "9.0", "gfx942"
  Figure<Bytes> memory;
  Figure<Bandwidth> memory_bandwidth;
  std::optional<Figure<Bytes>> l2;
  Figure<std::int64_t> sm_count;
  std::optional<Figure<Frequency>> boost_clock;
  std::optional<Figure<Frequency>> tensor_clock;  // clock at which the quoted tensor rate holds
  std::optional<Figure<FlopRate>> fp32;
  std::optional<Figure<FlopRate>> tf32;
  std::optional<Figure<FlopRate>> fp16;
  std::optional<Figure<FlopRate>> bf16;
  std::optional<Figure<FlopRate>> fp8;
  Figure<Power> power_limit;
  std::optional<Figure<Bandwidth>> scale_up; // NVLink, XGMI: per direction, all links of one GPU
  std::int64_t pcie_generation = 4;
};

enum class Transport : std::uint8_t { kInfiniBand, kRoce, kTcp };

struct Nic {
  std::string name;                        // ib-ndr-400, roce-100, eth-10
  std::string title;
  Transport transport = Transport::kInfiniBand;
  Figure<Bandwidth> line_rate;             // per direction
  Figure<double> efficiency;               // payload over line rate that a large message reaches
  Figure<Duration> latency;                // NIC to NIC through no switch, one way
  Figure<Duration> switch_latency;         // per switch hop
};

enum class Interconnect : std::uint8_t { kNvswitch, kNvlinkMesh, kPcie };

struct Node {
  std::string name;                        // dgx-h100
  std::string title;
  std::string gpu;                         // catalogue name
  std::int64_t gpus = 8;
  Interconnect interconnect = Interconnect::kNvswitch;
  Figure<double> scale_up_efficiency;      // payload over raw rate of the GPU-GPU links
  Figure<Duration> scale_up_latency;       // GPU to GPU, one way
  std::string nic;                         // default NIC
  std::int64_t nics = 8;
  std::int64_t pcie_generation = 5;
  Figure<Bandwidth> pcie_bandwidth;        // x16, per direction, effective
  Figure<Duration> pcie_latency;
  std::int64_t gpus_per_pcie_switch = 2;   // 1: each GPU has its own root port
  std::int64_t sockets = 2;
  Figure<Bandwidth> socket_link;           // UPI / xGMI between sockets, per direction
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
