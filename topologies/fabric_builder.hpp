// topologies/fabric_builder.hpp — adds devices, links and bundles to a Fabric, keeping them consistent:
// every link belongs to one bundle, and a bundle's capacity is the sum over its links.
#pragma once

#include <span>
#include <string>

#include "topologies/fabric.hpp"

namespace stepcast::topology {

struct LinkSpec {
  LinkKind kind = LinkKind::kNetwork;
  Bandwidth rate;
  double efficiency = 1.0;
  Duration latency;
};

class FabricBuilder {
 public:
  explicit FabricBuilder(Fabric& fabric) : fabric_{fabric} {}

  DeviceId device(DeviceKind kind, std::string name, std::uint32_t node, std::uint32_t index);
  std::uint32_t bundle();
  void link(DeviceId from, DeviceId to, const LinkSpec& spec, std::uint32_t bundle);
  // `count` parallel links of one bundle; returns the bundle.
  std::uint32_t link(DeviceId from, DeviceId to, const LinkSpec& spec, int count = 1);
  // Both directions, a bundle each.
  void duplex(DeviceId a, DeviceId b, const LinkSpec& spec, int count = 1);

 private:
  Fabric& fabric_;
};

}  // namespace stepcast::topology
