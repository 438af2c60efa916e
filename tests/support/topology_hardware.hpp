// tests/support/topology_hardware.hpp — round-number hardware for fabric tests, so that expectations
// can be worked out by hand. Not the catalogue.
#pragma once

#include "topologies/generate.hpp"

namespace stepcast::topology::test {

inline Figure<Bandwidth> gigabytes(double value) { return {Bandwidth::from_si(value * 1e9), Basis::kAssumed, "round number"}; }
inline Figure<Duration> nanoseconds(std::int64_t value) { return {Duration::nanoseconds(value), Basis::kAssumed, "round number"}; }
template <class T>
Figure<T> figure(T value) { return {value, Basis::kAssumed, "round number"}; }

// Eight GPUs on an NVSwitch (450 GB/s at 80 %), two sockets, a PCIe switch and a 50 GB/s NIC (at 96 %)
// for each GPU. Latencies: NVLink 1000 ns, PCIe 200 ns a link, NIC to NIC 1000 ns, 300 ns a switch.
inline ClusterHardware nvswitch_box() {
  ClusterHardware box;
  box.gpu.name = "test-gpu";
  box.gpu.scale_up = gigabytes(450);
  box.node.name = "test-box";
  box.node.gpus = 8;
  box.node.interconnect = Interconnect::kNvswitch;
  box.node.scale_up_efficiency = figure(0.8);
  box.node.scale_up_latency = nanoseconds(1000);
  box.node.nics = 8;
  box.node.pcie_bandwidth = gigabytes(55);
  box.node.pcie_latency = nanoseconds(200);
  box.node.gpus_per_pcie_switch = 1;
  box.node.sockets = 2;
  box.node.socket_link = gigabytes(20);
  box.node.socket_latency = nanoseconds(100);
  box.node.dram_bandwidth = gigabytes(400);
  box.nic.name = "test-nic";
  box.nic.line_rate = gigabytes(50);
  box.nic.efficiency = figure(0.96);
  box.nic.latency = nanoseconds(1000);
  box.nic.switch_latency = nanoseconds(300);
  box.nic.leaf_ports = figure(std::int64_t{32});
  box.gpus_per_node = 8;
  return box;
}

// Four GPUs on two PCIe switches, one a socket; one NIC for the box.
inline ClusterHardware pcie_box() {
  ClusterHardware box = nvswitch_box();
  box.gpu.scale_up.reset();
  box.node.interconnect = Interconnect::kPcie;
  box.node.gpus = 4;
  box.node.gpus_per_pcie_switch = 2;
  box.node.nics = 1;
  box.gpus_per_node = 4;
  return box;
}

inline scenario::Cluster cluster_of(std::int64_t nodes, const char* preset) {
  scenario::Cluster cluster;
  cluster.nodes = nodes;
  cluster.node = "test-box";
  cluster.fabric = scenario::Fabric{.preset = preset};
  return cluster;
}

// What of the traffic crosses the bundle of this name.
inline double share_of(const Fabric& fabric, const Path& path, const std::string& bundle) {
  double share = 0.0;
  for (const Path::Share& part : path.shares)
    if (bundle_name(fabric, part.bundle) == bundle) share += part.share;
  return share;
}

}  // namespace stepcast::topology::test
