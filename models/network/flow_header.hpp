// models/network/flow_header.hpp — what a switch can hash of a RoCEv2 packet, and where its UDP source
// port, the only free part of the 5-tuple, comes from.
//
// Layout   source address, destination address, ports, protocol (as 16 bits), and if asked for the BTH
//          destination QP (24 bits, as 32), each most significant byte first: 16-bit lanes, as in RTAG7
// Ports    from a flow label fl of 20 bits:  0xC000 | ((fl & 0x3FFF) ^ ((fl & 0xFC000) >> 14))        (1)
//          the kernel's label of a QP pair:  v = local * remote; v ^= v >> 20; v ^= v >> 40; v & 0xFFFFF (2)
//          no label: the address handle draws a port from 0xC000..0xFFFF                               (3)
// Source   RoCEv2: InfiniBand specification, annex A17 (UDP port 4791). (1) rdma-core,
//          ibv_flow_label_to_udp_sport; (2) Linux include/rdma/ib_verbs.h, rdma_calc_flow_label;
//          (3) rdma-core, providers/mlx5 and hns, create address handle
// Ignores  IPv6, VLAN tags, encapsulation
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace stepcast::network {

inline constexpr std::uint16_t kRocePort = 4791;
inline constexpr std::uint8_t kUdp = 17;
inline constexpr std::uint16_t kFirstSourcePort = 0xC000;
inline constexpr std::uint32_t kQpMask = 0xFFFFFF;

struct FlowHeader {
  std::uint32_t source = 0;            // IPv4
  std::uint32_t destination = 0;
  std::uint16_t source_port = kFirstSourcePort;
  std::uint16_t destination_port = kRocePort;
  std::uint8_t protocol = kUdp;
  std::uint32_t destination_qp = 0;    // 24 bits
};

enum class HashFields : std::uint8_t { kFiveTuple, kFiveTupleAndQp };

// The bytes that are hashed.
class HashKey {
 public:
  HashKey(const FlowHeader& header, HashFields fields) {
    add(header.source, 4);
    add(header.destination, 4);
    add(header.source_port, 2);
    add(header.destination_port, 2);
    add(header.protocol, 2);
    if (fields == HashFields::kFiveTupleAndQp) add(header.destination_qp & kQpMask, 4);
  }
  [[nodiscard]] std::span<const std::uint8_t> bytes() const { return {bytes_.data(), size_}; }

 private:
  void add(std::uint32_t value, int bytes) {
    for (int b = bytes - 1; b >= 0; --b) bytes_[size_++] = static_cast<std::uint8_t>(value >> (8 * b));
  }
  std::array<std::uint8_t, 18> bytes_{};
  std::size_t size_ = 0;
};

// Equation (1).
constexpr std::uint16_t source_port_of_label(std::uint32_t flow_label) {
  return static_cast<std::uint16_t>(kFirstSourcePort | ((flow_label & 0x3FFF) ^ ((flow_label & 0xFC000) >> 14)));
}

// Equation (2).
constexpr std::uint32_t flow_label_of_qps(std::uint32_t local, std::uint32_t remote) {
  std::uint64_t v = std::uint64_t{local} * remote;
  v ^= v >> 20;
  v ^= v >> 40;
  return static_cast<std::uint32_t>(v & 0xFFFFF);
}

}  // namespace stepcast::network
