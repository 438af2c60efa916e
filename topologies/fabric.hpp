// topologies/fabric.hpp — a cluster as a directed multigraph: GPUs, NVSwitches, PCIe switches, root
// complexes, NICs, leaf/spine/core switches, and links with a rate, a latency and an efficiency.
// The generators fill it; routing reads it; the simulator sees link capacities and path shares only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/ids.hpp"
#include "sim/base/units.hpp"

namespace stepcast::topology {

enum class DeviceKind : std::uint8_t {
  kGpu, kNvswitch, kPcieSwitch, kRootComplex, kHostMemory, kNic, kLeaf, kSpine, kCore
};

struct Device {
  DeviceKind kind = DeviceKind::kGpu;
  std::string name;              // "node3/gpu5", "leaf2"
  std::uint32_t node = 0;        // host index; meaningless for switches outside hosts
  std::uint32_t index = 0;       // among its kind in its node (or in the fabric)
};

enum class LinkKind : std::uint8_t { kNvlink, kPcie, kSocket, kMemory, kNetwork };

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

struct Fabric {
  std::string name;
  std::vector<Device> devices;
  std::vector<Link> links;
  std::vector<Bundle> bundles;
  std::vector<DeviceId> gpus;    // by global GPU index: node * gpus_per_node + local
  std::uint32_t nodes = 0;
  std::uint32_t gpus_per_node = 0;
};

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
  int switch_hops = 0;
};

}  // namespace stepcast::topology
