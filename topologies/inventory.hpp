// topologies/inventory.hpp — what a fabric consists of, and typical paths through it, for people.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "topologies/fabric.hpp"
#include "topologies/routing.hpp"

namespace stepcast::topology {

struct DeviceCount {
  DeviceKind kind = DeviceKind::kGpu;
  std::int64_t count = 0;
};

// Links alike in kind, ends and rate. A two-way link counts once.
struct LinkCount {
  LinkKind kind = LinkKind::kNetwork;
  DeviceKind from = DeviceKind::kGpu;
  DeviceKind to = DeviceKind::kGpu;
  Bandwidth rate;               // raw, each way
  double efficiency = 1.0;
  Duration latency;             // the longer of the two ways
  std::int64_t count = 0;
};

struct Inventory {
  std::vector<DeviceCount> devices;  // in the order of DeviceKind, only those that exist
  std::vector<LinkCount> links;      // inside hosts first
};

// Cards of networks that a node is not on do not exist.
Inventory take_inventory(const Fabric& fabric);
// Links of one network alone.
std::vector<LinkCount> links_of(const Fabric& fabric, const NetworkPart& part);

struct PathExample {
  std::string what;             // "same node", "same NVLink domain", "same leaf", "across leaves", "across pods"
  std::uint32_t from = 0;       // global GPU index
  std::uint32_t to = 0;
  Path path;
};

// The first pair of each kind that the fabric has, from the first GPU of each network ("NAME: same leaf").
std::vector<PathExample> example_paths(const Fabric& fabric, const Router& router);

// "ethernet for pp: 1 x NIC a node", "rocket on 8 nodes: 8 x NIC a node".
std::string network_text(const Fabric& fabric, std::size_t network, const std::string& nic);

std::string inventory_text(const Inventory& inventory);
// One line a bundle, in the order of travel: its ends, the share of the traffic and the capacity.
std::string path_text(const Fabric& fabric, const PathExample& example);

// "450 GB/s" inside a host, "400 Gb/s" on the network.
std::string rate_text(LinkKind kind, Bandwidth rate);

}  // namespace stepcast::topology
