// models/network/transport/packet_transport.hpp — what all packet transports share: messages cut into packets,
// a NIC that serves the messages of its host in turn, starts, followers and completions.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "models/network/transport/packet_network.hpp"
#include "models/network/transport/traffic.hpp"
#include "sim/base/random.hpp"
#include "sim/engine/engine.hpp"

namespace stepcast::network {

class PacketTransport : public PacketListener, public engine::EventTarget {
 public:
  PacketTransport(const Traffic& traffic, const PacketFormat& format, const SwitchModel& switches, const RunOptions& options);

  // By message.
  std::vector<Completion> run();

  std::optional<Packet> next_packet(std::uint32_t host) final;
  void on_packet(const Packet& packet) final;
  void on_event(engine::Engine& engine, std::uint32_t kind, std::uint64_t arg) final;

 protected:
  // Requires of the transport: next_data only if may_send; it names sequence and route.
  virtual void on_start(std::uint32_t message) = 0;
  [[nodiscard]] virtual bool may_send(std::uint32_t message) const = 0;
  virtual Packet next_data(std::uint32_t message) = 0;
  virtual void on_data(const Packet& packet) = 0;     // at the receiver
  virtual void on_control(const Packet& packet) = 0;  // at the sender
  virtual void on_timer(std::uint64_t arg);

  // The message may have become able to send.
  void ready(std::uint32_t message);
  void finish(std::uint32_t message);
  void at_timer(Duration delay, std::uint64_t arg) { engine_.after(delay, engine::Phase::kCompletion, *this, kTimer, arg); }
  void reply(const Packet& data, PacketKind kind, std::uint32_t sequence, std::uint64_t word = 0);

  [[nodiscard]] TimePoint now() const { return engine_.now(); }
  [[nodiscard]] std::uint32_t packets(std::uint32_t message) const { return packets_[message]; }
  [[nodiscard]] std::uint32_t packet_bytes(std::uint32_t message, std::uint32_t sequence) const;
  [[nodiscard]] const Traffic& traffic() const { return traffic_; }
  [[nodiscard]] const PacketFormat& format() const { return format_; }
  [[nodiscard]] std::uint32_t host_of(std::uint32_t message) const { return traffic_.wires[traffic_.routes[traffic_.messages[message].routes[0]].front()].from; }
  [[nodiscard]] std::uint32_t target_of(std::uint32_t message) const { return traffic_.wires[traffic_.routes[traffic_.messages[message].routes[0]].back()].to; }
  [[nodiscard]] bool done(std::uint32_t message) const { return done_[message]; }
  Rng& random() { return random_; }

 private:
  enum Event : std::uint32_t { kStart, kTimer };

  const Traffic& traffic_;
  PacketFormat format_;
  engine::Engine engine_;
  PacketNetwork network_;
  Rng random_;
  std::vector<std::uint32_t> packets_;
  std::vector<bool> done_;
  std::vector<bool> in_ring_;
  std::vector<std::deque<std::uint32_t>> ring_;  // by host: messages that may send, in turn
  std::vector<std::vector<std::uint32_t>> followers_;
  std::vector<Completion> completions_;
  std::size_t ended_ = 0;
};

}  // namespace stepcast::network
