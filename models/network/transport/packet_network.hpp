// models/network/transport/packet_network.hpp — packets that queue at the egress of wires, on the engine's clock.
//
// Model    Every wire has one egress queue at the device that it leaves. A packet waits, is sent in bytes / rate,
//          arrives a latency later and joins the next wire of its route. A host's wire has no queue of data: when
//          it falls idle it asks the transport for the next packet (the NIC's scheduler), control packets first.
//          Lossless (priority flow control, IEEE 802.1Qbb): one first-in-first-out queue a wire, control included. A
//            switch counts the bytes that it holds by the wire on which they came in. Above xoff it pauses that wire:
//            a latency later its egress stops after the packet in hand, whatever the destinations of those that
//            wait; below xon it resumes. Back-pressure, head-of-line blocking, congestion trees and the larger
//            share of a flow alone on its ingress follow, and are no parameters.
//          Trimming (NDP: Handley et al., SIGCOMM 2017; UE specification 1.0): control packets have
//            strict priority over data. Data that finds the queue full (and not empty) is cut to its header, the one that arrives
//            or the last in the queue at equal odds; the header goes on as control. Data is marked when it leaves
//            a queue of more than ecn_high bytes, never below ecn_low, with linear odds between.
//          Quanta: several packets may move as one. A quantum goes on to the next queue when its first packet has come in
//            (virtual cut-through), so that it adds no delay a hop, and is delivered when all of it has.
// Valid    store and forward of packets; one traffic class; quanta: wires of one rate
// Ignores  cut-through of packets, switch-internal limits, corruption, loss of control packets, PFC frames' own bytes
// Cost     two events a quantum and wire
// Tests    unit/roce_transport_test (lossless), unit/pull_transport_test (trimming), diff/packet_replay_test
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "models/network/transport/traffic.hpp"
#include "sim/base/random.hpp"
#include "sim/engine/engine.hpp"

namespace stepcast::network {

enum class PacketKind : std::uint8_t { kData, kAck, kNack, kPull };

struct Packet {
  std::uint32_t message = 0;
  std::uint32_t route = 0;     // into Traffic::routes
  std::uint32_t sequence = 0;  // of data; in control packets the transport's
  std::uint32_t bytes = 0;
  std::uint32_t header_bytes = 0;  // what is left of it when it is trimmed
  std::uint64_t word = 0;      // the transport's: credit, bytes received
  std::uint32_t entropy = 0;   // the transport's number of the path, echoed in control packets
  PacketKind kind = PacketKind::kData;
  bool trimmed = false;
  bool marked = false;         // congestion experienced
  bool urgent = false;         // wants its acknowledgement at once
  TimePoint sent;              // when the data packet left its host
};

struct SwitchModel {
  enum class Kind : std::uint8_t { kLossless, kTrimming };
  Kind kind = Kind::kLossless;
  std::uint32_t packet_bytes = 0;  // a quantum of several packets moves on when its first has come in
  double xoff_bytes = 0.0;   // lossless: an ingress is paused above this
  double xon_bytes = 0.0;    //           and resumed below this
  double queue_bytes = 0.0;  // trimming: data an egress queue holds at most
  double ecn_low_bytes = 0.0;
  double ecn_high_bytes = 0.0;
};

class PacketListener {
 public:
  virtual ~PacketListener() = default;
  // The host's wire is idle: the data packet that it sends now, if any.
  virtual std::optional<Packet> next_packet(std::uint32_t host) = 0;
  // At the end of the packet's route.
  virtual void on_packet(const Packet& packet) = 0;
};

class PacketNetwork final : public engine::EventTarget {
 public:
  PacketNetwork(engine::Engine& engine, PacketListener& listener, const Traffic& traffic, const SwitchModel& model,
                std::uint64_t seed);

  // A control packet enters at the first wire of its route.
  void send_control(const Packet& packet);
  // The listener may have data to send from this host: asks next_packet() unless its wire is busy or paused.
  void wake(std::uint32_t host);

  void on_event(engine::Engine& engine, std::uint32_t kind, std::uint64_t arg) override;
  [[nodiscard]] std::string_view target_name() const override { return "packet network"; }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  struct Cell {  // a packet on its way
    Packet packet;
    std::uint32_t at = 0;           // in hops_: the wire that it takes next
    std::uint32_t ingress = kNone;  // wire on which it came into the device where it is
    std::uint32_t next = kNone;     // in its queue, or in the free list
    std::uint32_t previous = kNone;
  };
  struct Queue {
    std::uint32_t first = kNone;
    std::uint32_t last = kNone;
    double bytes = 0.0;
  };
  struct Port {  // the egress of a wire, and what its far end holds of it
    Queue data;
    Queue control;
    double ps_a_byte = 0.0;
    Duration latency;
    bool sending = false;
    std::uint32_t sending_bytes = 0;
    std::uint32_t sending_from = kNone;  // the ingress that holds what is being sent
    std::uint32_t host = kNone;  // that it leaves, if it does
    bool paused = false;
    bool pausing = false;     // the far end has asked for a pause
    double held_bytes = 0.0;  // at the far end, of packets that came by this wire
  };

  std::uint32_t make_cell(const Packet& packet);
  void free_cell(std::uint32_t cell);
  void push(Queue& queue, std::uint32_t cell);
  void remove(Queue& queue, std::uint32_t cell);
  void enqueue_trimming(std::uint32_t wire, std::uint32_t cell);
  void serve(std::uint32_t wire);
  void send(std::uint32_t wire, std::uint32_t cell);
  void sent(std::uint32_t wire);
  void arrived(std::uint32_t cell);
  void hold(std::uint32_t wire, double bytes);
  void release(std::uint32_t wire, double bytes);
  [[nodiscard]] bool marks(double queue_bytes);
  engine::Engine& engine_;
  PacketListener& listener_;
  SwitchModel model_;
  Rng random_;
  std::vector<Port> ports_;               // by wire
  std::vector<std::uint32_t> host_wire_;  // by host: the wire that leaves it
  std::vector<std::uint32_t> hops_;       // wires of all routes, kNone after each
  std::vector<std::uint32_t> first_hop_;  // by route
  std::vector<Cell> cells_;
  std::uint32_t free_cells_ = kNone;
};

}  // namespace stepcast::network
