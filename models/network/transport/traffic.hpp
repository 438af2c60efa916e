// models/network/transport/traffic.hpp — messages over given routes: what every transport model is asked, and
// what it answers.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/base/time.hpp"

namespace stepcast::network {

// A directed link between two devices (hosts or switches, numbered by the caller).
struct Wire {
  double bytes_per_s = 0.0;
  Duration latency;  // propagation, and the latency of the switch that it leaves
  std::uint32_t from = 0;
  std::uint32_t to = 0;
};

// How a transport cuts a message into packets.
struct PacketFormat {
  double payload_bytes = 4096.0;
  double header_bytes = 64.0;

  [[nodiscard]] double packet_bytes() const { return payload_bytes + header_bytes; }
  [[nodiscard]] double wire_factor() const { return packet_bytes() / payload_bytes; }
  // Of a quantum of so many packets, which move as one.
  [[nodiscard]] PacketFormat times(std::uint32_t packets) const { return {packets * payload_bytes, packets * header_bytes}; }
};

// RDMA's largest path MTU, 4096 B of payload, and 64 B of headers: what the recordings' RoCE, NDP and EQDS packets
// carry (../shared/packet_truth/README.md).
inline constexpr PacketFormat kRoceFormat{.payload_bytes = 4096.0, .header_bytes = 64.0};
// The recordings' UEC packets: 4150 B of which 64 B are headers (the same README).
inline constexpr PacketFormat kUecFormat{.payload_bytes = 4086.0, .header_bytes = 64.0};

using Route = std::vector<std::uint32_t>;  // wires from host to host, in the order of travel

struct Message {
  double bytes = 0.0;                           // payload
  TimePoint start = {};                         // if it follows a message: no earlier than this and that one's end
  std::vector<std::uint32_t> routes;            // into Traffic::routes: one, or all that it is spread over
  std::vector<std::uint32_t> back_routes = {};  // the same for acknowledgements; the plain fluid needs none
  std::optional<std::uint32_t> after = {};      // starts when that message has ended at its sender
};

// Requires: wires of positive rate, routes of at least one wire, messages of at least one route and byte; the
// routes of one message join the same two hosts.
struct Traffic {
  std::vector<Wire> wires;
  std::vector<Route> routes;
  std::vector<Message> messages;
};

struct RunOptions {
  std::uint64_t seed = 1;     // of everything random
  std::uint32_t quantum = 1;  // packets that move as one: cost falls with it, accuracy too. Requires: > 0
};

// At the sender: from the first byte sent to the last acknowledgement received.
struct Completion {
  TimePoint start;
  TimePoint end;
};

}  // namespace stepcast::network
