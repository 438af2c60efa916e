#include "topologies/fabric.hpp"

#include <algorithm>
#include <utility>

#include "topologies/fabric_builder.hpp"

namespace stepcast::topology {

namespace {

// The device's name, or its group's when the bundle touches several: "spine*".
std::string end_name(const Fabric& fabric, const Bundle& bundle, DeviceId Link::*end) {
  const DeviceId first = fabric.links[bundle.links.front().index()].*end;
  bool several = false;
  for (const LinkId id : bundle.links) several = several || fabric.links[id.index()].*end != first;
  const Device& device = fabric.devices[first.index()];
  return several ? std::string{device_kind_name(device.kind)} + "*" : device.name;
}

}  // namespace

std::string_view device_kind_name(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::kGpu: return "gpu";
    case DeviceKind::kNvswitch: return "nvswitch";
    case DeviceKind::kPcieSwitch: return "pcie-switch";
    case DeviceKind::kRootComplex: return "root-complex";
    case DeviceKind::kHostMemory: return "host-memory";
    case DeviceKind::kCpu: return "cpu";
    case DeviceKind::kNic: return "nic";
    case DeviceKind::kCable: return "cable";
    case DeviceKind::kLeaf: return "leaf";
    case DeviceKind::kSpine: return "spine";
    case DeviceKind::kCore: return "core";
  }
  return "device";
}

std::string_view link_kind_name(LinkKind kind) {
  switch (kind) {
    case LinkKind::kNvlink: return "nvlink";
    case LinkKind::kPcie: return "pcie";
    case LinkKind::kC2c: return "c2c";
    case LinkKind::kSocket: return "socket";
    case LinkKind::kMemory: return "memory";
    case LinkKind::kCpu: return "cpu";
    case LinkKind::kNetwork: return "network";
  }
  return "link";
}

std::uint32_t Fabric::network_of(const Link& link) const {
  const std::uint32_t end = std::max(link.from.value(), link.to.value());  // a switch: these follow the hosts
  std::uint32_t n = 0;
  while (n + 1 < networks.size() && end >= networks[n + 1].first_switch) ++n;
  return n;
}

std::string bundle_name(const Fabric& fabric, std::uint32_t bundle) {
  const Bundle& links = fabric.bundles[bundle];
  return end_name(fabric, links, &Link::from) + " -> " + end_name(fabric, links, &Link::to);
}

DeviceId FabricBuilder::device(DeviceKind kind, std::string name, std::uint32_t node, std::uint32_t index) {
  const DeviceId id{fabric_.devices.size()};
  fabric_.devices.push_back({.kind = kind, .name = std::move(name), .node = node, .index = index});
  return id;
}

std::uint32_t FabricBuilder::bundle() {
  fabric_.bundles.emplace_back();
  return static_cast<std::uint32_t>(fabric_.bundles.size() - 1);
}

void FabricBuilder::link(DeviceId from, DeviceId to, const LinkSpec& spec, std::uint32_t bundle) {
  const LinkId id{fabric_.links.size()};
  fabric_.links.push_back({.from = from, .to = to, .kind = spec.kind, .rate = spec.rate,
                           .efficiency = spec.efficiency, .latency = spec.latency, .bundle = bundle});
  Bundle& whole = fabric_.bundles[bundle];
  whole.links.push_back(id);
  whole.capacity = whole.capacity + fabric_.links.back().capacity();
}

std::uint32_t FabricBuilder::link(DeviceId from, DeviceId to, const LinkSpec& spec, int count) {
  const std::uint32_t whole = bundle();
  for (int i = 0; i < count; ++i) link(from, to, spec, whole);
  return whole;
}

void FabricBuilder::duplex(DeviceId a, DeviceId b, const LinkSpec& spec, int count) {
  link(a, b, spec, count);
  link(b, a, spec, count);
}

}  // namespace stepcast::topology
