// topologies/catalogue_keys.hpp — the keys of catalogue files, once: they read the files and list them.
#pragma once

#include <array>
#include <utility>

#include "sim/scenario/key.hpp"
#include "topologies/hardware.hpp"

namespace stepcast::topology {

constexpr std::array<std::pair<const char*, Transport>, 4> enum_words(Transport) {
  return {{{"infiniband", Transport::kInfiniBand}, {"roce", Transport::kRoce}, {"tcp", Transport::kTcp}, {"uec", Transport::kUec}}};
}
constexpr std::array<std::pair<const char*, Interconnect>, 3> enum_words(Interconnect) {
  return {{{"nvswitch", Interconnect::kNvswitch}, {"nvlink-mesh", Interconnect::kNvlinkMesh}, {"pcie", Interconnect::kPcie}}};
}

template <class V>
void visit_keys(V& v, Gpu& gpu) {
  using namespace scenario;
  v.key("title", gpu.title, "Full name.", required().not_empty());
  v.key("architecture", gpu.architecture, "Compute capability or family.", required().not_empty());
  v.key("aliases", gpu.aliases, "Other spellings.");
  v.key("memory", gpu.memory, "Nominal device memory.", required().above(0));
  v.key("usable_memory", gpu.usable_memory, "Device memory as the driver reports it.", above(0));
  v.key("memory_bandwidth", gpu.memory_bandwidth, "Peak device memory bandwidth.", required().above(0));
  v.key("l2", gpu.l2, "Second-level cache.", above(0));
  v.key("sm_count", gpu.sm_count, "Streaming multiprocessors or compute units.", required().at_least(1));
  v.key("base_clock", gpu.base_clock, "Base clock.", above(0));
  v.key("boost_clock", gpu.boost_clock, "Highest clock.", above(0));
  v.key("tensor_clock", gpu.tensor_clock, "Clock at which the tensor rates hold.", above(0));
  v.key("fp32", gpu.fp32, "Dense fp32 rate without tensor cores.", above(0));
  v.key("tf32", gpu.tf32, "Dense tf32 rate.", above(0));
  v.key("fp16", gpu.fp16, "Dense fp16 rate, fp32 accumulation.", above(0));
  v.key("bf16", gpu.bf16, "Dense bf16 rate.", above(0));
  v.key("fp8", gpu.fp8, "Dense fp8 rate.", above(0));
  v.key("fp4", gpu.fp4, "Dense fp4 rate.", above(0));
  v.key("int8", gpu.int8, "Dense int8 rate, an operation counted as a FLOP.", above(0));
  v.key("matmul_bf16", gpu.matmul_bf16, "Best bf16 matrix product found by search.", above(0));
  v.key("matmul_fp8", gpu.matmul_fp8, "Best fp8 matrix product found by search.", above(0));
  v.key("power_limit", gpu.power_limit, "Board power limit.", required().above(0));
  v.key("scale_up", gpu.scale_up, "NVLink or xGMI, all links of a GPU, one direction, raw.", above(0));
  v.key("pcie_generation", gpu.pcie_generation, "PCIe generation.", required().between(3, 7));
}

template <class V>
void visit_keys(V& v, Nic& nic) {
  using namespace scenario;
  v.key("title", nic.title, "Full name.", required().not_empty());
  v.key("aliases", nic.aliases, "Other spellings.");
  v.key("transport", nic.transport, "How messages travel.", required());
  v.key("line_rate", nic.line_rate, "Rate of the port, one direction.", required().above(0));
  v.key("efficiency", nic.efficiency, "Payload over line rate that large messages reach.", required().between(0.01, 1));
  v.key("latency", nic.latency, "NIC to NIC without a switch, one way.", required().at_least(0));
  v.key("switch_latency", nic.switch_latency, "Each switch on the way.", required().at_least(0));
  v.key("leaf_ports", nic.leaf_ports, "Down-ports of the usual leaf switch.", required().at_least(1));
}

template <class V>
void visit_keys(V& v, MeshLink& link) {
  using namespace scenario;
  v.key("a", link.a, "One GPU of the pair.", required().at_least(0));
  v.key("b", link.b, "The other.", required().at_least(0));
  v.key("links", link.links, "Parallel links of the pair.", at_least(1));
}

template <class V>
void visit_keys(V& v, Node& node) {
  using namespace scenario;
  v.key("title", node.title, "Full name.", required().not_empty());
  v.key("aliases", node.aliases, "Other spellings.");
  v.key("gpu", node.gpu, "Catalogue name of its GPU.", required().not_empty());
  v.key("gpus", node.gpus, "GPUs of the node.", required().between(1, 1024));
  v.key("interconnect", node.interconnect, "How its GPUs are joined.", required());
  v.key("mesh", node.mesh, "Pairs that an nvlink-mesh joins; absent: every pair, alike.");
  v.key("scale_up_efficiency", node.scale_up_efficiency, "Payload over raw rate of the GPU-GPU links.", between(0.01, 1));
  v.key("scale_up_latency", node.scale_up_latency, "GPU to GPU, one way.", at_least(0));
  v.key("nvlink_domain", node.nvlink_domain, "Nodes whose GPUs share one NVSwitch fabric (a rack); absent: each has its own.", between(1, 1024));
  v.key("nic", node.nic, "Catalogue name of its NICs.", required().not_empty());
  v.key("nics", node.nics, "NICs for GPU traffic.", required().between(0, 1024));
  v.key("pcie_generation", node.pcie_generation, "PCIe generation.", required().between(3, 7));
  v.key("pcie_bandwidth", node.pcie_bandwidth, "PCIe x16, one direction, effective.", required().above(0));
  v.key("pcie_latency", node.pcie_latency, "Each PCIe link on the way.", required().at_least(0));
  v.key("pcie_uplink", node.pcie_uplink, "PCIe switch to CPU, where slower than pcie_bandwidth.", above(0));
  v.key("gpu_host_link", node.gpu_host_link, "GPU to CPU where it is not PCIe (NVLink-C2C), per GPU and direction, effective.", above(0));
  v.key("gpus_per_pcie_switch", node.gpus_per_pcie_switch, "GPUs of a PCIe switch; 0: root ports of their own.", required().between(0, 1024));
  v.key("peer_to_peer", node.peer_to_peer, "Whether PCIe devices reach GPU memory directly.");
  v.key("sockets", node.sockets, "CPU sockets.", required().between(1, 1024));
  v.key("socket_link", node.socket_link, "Between two sockets, one direction, effective; absent: not joined.", above(0));
  v.key("socket_latency", node.socket_latency, "Between two sockets.", at_least(0));
  v.key("cpu_cores", node.cpu_cores, "Physical cores of the node.", required().at_least(1));
  v.key("dram_bandwidth", node.dram_bandwidth, "Host memory bandwidth of the node, peak.", required().above(0));
  v.key("host_memory", node.host_memory, "Host memory of the node.", required().above(0));
}

}  // namespace stepcast::topology
