// topologies/fabric.hpp — a cluster as a directed multigraph: GPUs, NVSwitches, PCIe switches, root
// complexes, NICs, leaf/spine/core switches, and links with a rate, a latency and an efficiency.
// The generators fill it; routing reads it; the simulator sees link capacities and path shares only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/ids.hpp"
#include "sim/base/units.hpp"
#include "sim/scenario/words.hpp"

namespace stepcast::topology {

enum class DeviceKind : std::uint8_t {
  kGpu, kNvswitch, kPcieSwitch, kRootComplex, kHostMemory, kCpu, kNic, kCable, kLeaf, kSpine, kCore
};

struct Device {
  DeviceKind kind = DeviceKind::kGpu;
  std::string name;              // "node3/gpu5", "leaf2"
  std::uint32_t node = 0;        // host index; meaningless for switches outside hosts
  std::uint32_t index = 0;       // among its kind in its node (or in the fabric)
};

enum class LinkKind : std::uint8_t { kNvlink, kPcie, kC2c, kSocket, kMemory, kCpu, kNetwork };

struct Link {
  DeviceId from;
  DeviceId to;
  LinkKind kind = LinkKind::kNetwork;
  Bandwidth rate;                // raw, this direction
  double efficiency = 1.0;       // payload share a long transfer reaches
  Duration latency;
  // Parallel equal-cost links that ideal routing loads evenly act as one: a bundle.
  std::uint32_t bundle = 0;
  [[nodiscard]] Bandwidth capacity() const { return rate * efficiency; }
};

struct Bundle {
  std::vector<LinkId> links;     // at least one
  Bandwidth capacity;            // sum over the links
};

// Every host looks like this one. Indices are within a host.
struct HostShape {
  std::uint32_t devices = 0;     // device d of node n is devices[n * host.devices + d]; links and bundles alike
  std::uint32_t links = 0;
  std::uint32_t bundles = 0;
  std::uint32_t physical_gpus = 0;               // GPUs in the box, used or not
  std::vector<std::uint32_t> gpus;               // devices, by local GPU
  std::vector<std::uint32_t> nics;               // devices, by local NIC: those of the first network first
  std::vector<std::uint32_t> memory_of_gpu;      // the host memory on the GPU's socket
  std::vector<std::uint32_t> to_domain;          // bundles GPU -> NVSwitch of a domain of several hosts, by local GPU; else none
  std::vector<std::uint32_t> from_domain;        // and back
  std::vector<std::uint32_t> cpu_of_gpu;         // the cores there, where they move what a network carries (TCP); else none
  std::vector<std::optional<std::uint32_t>> gpu_of_nic;      // local GPU beside the NIC, if used
};

// Where a NIC meets its network.
struct Port {
  bool attached = false;         // false: this node is not on the NIC's network, and has no such NIC
  std::uint32_t leaf = 0;        // index into Fabric::leaves
  std::uint32_t up = 0;          // bundle NIC -> leaf
  std::uint32_t down = 0;        // bundle leaf -> NIC
};

struct Leaf {
  DeviceId device;
  std::uint32_t group = 0;       // index into Fabric::groups
  std::optional<std::uint32_t> up;    // bundle to the group's spines; none: it has no spines
  std::optional<std::uint32_t> down;
};

// Leaves joined by one set of spines: the whole fabric of two tiers, a pod of three, a rail of rail-only.
struct SpineGroup {
  std::optional<std::uint32_t> up;    // bundle from all its spines to the cores; none: not joined to others
  std::optional<std::uint32_t> down;
};

// One of the networks side by side, each with NICs and switches of its own. The first is the cluster's own and
// joins all nodes. Its leaves, groups and switches are in a row.
struct NetworkPart {
  std::string name;                                     // of one beside the first
  std::vector<std::uint32_t> nodes;                     // that it joins, ascending
  std::uint32_t first_nic = 0;                          // its NICs among a host's
  std::uint32_t nics = 0;
  std::vector<std::vector<std::uint32_t>> nics_of_gpu;  // local NICs nearest to the GPU, in order
  std::vector<scenario::TrafficAxis> carries;           // none: what no other network is for
  bool by_search = false;      // of any shape (graph_network.hpp): no tree of bundles; groups reach themselves only
  bool through_host = false;   // TCP, or no GPUDirect: data bounce through host memory
  bool through_cores = false;  // and the host's cores move them (sockets)
  std::uint32_t first_switch = 0;                       // device
  std::uint32_t switches = 0;
  std::uint32_t first_leaf = 0;
  std::uint32_t leaves = 0;
  std::uint32_t first_group = 0;
  std::uint32_t groups = 0;
  // "NAME/leaf0" beside the first, whose names are bare.
  [[nodiscard]] std::string prefix() const { return name.empty() ? "" : name + "/"; }
};

// Hosts come first in devices, links and bundles; NVSwitches of domains larger than a host, switches and
// network links follow.
struct Fabric {
  std::string name;
  std::vector<Device> devices;
  std::vector<Link> links;
  std::vector<Bundle> bundles;
  std::vector<DeviceId> gpus;    // by global GPU index: node * gpus_per_node + local
  std::uint32_t nodes = 0;
  std::uint32_t gpus_per_node = 0;
  std::uint32_t nodes_per_domain = 1;  // hosts in a row on one NVSwitch fabric; the last domain may have fewer

  HostShape host;
  std::uint32_t first_switch = 0;      // of the network, in devices
  std::vector<NetworkPart> networks;  // at least one, in order of cluster.fabric and cluster.networks
  std::vector<Port> ports;       // by node * nics + NIC; empty: no network
  std::vector<Leaf> leaves;
  std::vector<SpineGroup> groups;
  bool peer_through_host = false;     // no PCIe peer-to-peer between GPUs
  std::vector<std::string> notes;     // what the generator assumed, for people

  [[nodiscard]] std::uint32_t nics_per_node() const { return static_cast<std::uint32_t>(host.nics.size()); }
  // Index into `networks` of a network link.
  [[nodiscard]] std::uint32_t network_of(const Link& link) const;
  // The NVLink domain of a GPU; hosts without NVLink are one each.
  [[nodiscard]] std::uint32_t gpus_per_domain() const { return gpus_per_node * nodes_per_domain; }
  [[nodiscard]] std::uint32_t domain_of(std::uint32_t gpu) const { return gpu / gpus_per_domain(); }
};

// "leaf3 -> spine*": the ends of a bundle, for messages.
std::string bundle_name(const Fabric& fabric, std::uint32_t bundle);
std::string_view device_kind_name(DeviceKind kind);  // "gpu", "nvswitch", ...
std::string_view link_kind_name(LinkKind kind);      // "nvlink", "pcie", ...

enum class PathKind : std::uint8_t { kSelf, kNvlink, kPcie, kNetwork };

// What one unit of traffic from a GPU to another puts on each bundle. Under ideal routing a flow
// spreads evenly over all equal-cost paths, so a share may be below 1.
struct Path {
  struct Share {
    std::uint32_t bundle = 0;
    double share = 1.0;
  };
  PathKind kind = PathKind::kSelf;
  std::vector<Share> shares;     // sorted by bundle
  Duration latency;              // sum along the longest equal-cost path
  int switch_hops = 0;           // NVSwitches, leaves, spines and cores on the way (not PCIe switches)
};

}  // namespace stepcast::topology
