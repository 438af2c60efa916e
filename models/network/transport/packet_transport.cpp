#include "models/network/transport/packet_transport.hpp"

#include <algorithm>
#include <cmath>

#include "sim/base/check.hpp"

namespace stepcast::network {

PacketTransport::PacketTransport(const Traffic& traffic, const PacketFormat& format, const SwitchModel& switches, const RunOptions& options)
    : traffic_{traffic},
      format_{format.times(options.quantum)},
      network_{engine_, *this, traffic, switches, options.seed},
      random_{options.seed, "packet transport"},
      done_(traffic.messages.size(), false),
      in_ring_(traffic.messages.size(), false),
      followers_(traffic.messages.size()),
      completions_(traffic.messages.size()) {
  for (std::uint32_t m = 0; m < traffic.messages.size(); ++m) {
    const Message& message = traffic.messages[m];
    SIM_CHECK(!message.back_routes.empty(), m);
    packets_.push_back(static_cast<std::uint32_t>(std::ceil(message.bytes / format_.payload_bytes)));
    const std::uint32_t host = host_of(m);
    if (host >= ring_.size()) ring_.resize(host + 1);
    if (message.after) {
      followers_[*message.after].push_back(m);
    } else {
      engine_.at(message.start, engine::Phase::kDispatch, *this, kStart, m);
    }
  }
}

std::vector<Completion> PacketTransport::run() {
  SIM_CHECK(engine_.run() == engine::StopReason::kDrained);
  SIM_CHECK(ended_ == completions_.size(), ended_, completions_.size());
  return completions_;
}

std::optional<Packet> PacketTransport::next_packet(std::uint32_t host) {
  if (host >= ring_.size()) return std::nullopt;
  std::deque<std::uint32_t>& ring = ring_[host];
  while (!ring.empty()) {
    const std::uint32_t message = ring.front();
    ring.pop_front();
    if (!may_send(message)) {
      in_ring_[message] = false;
      continue;
    }
    Packet packet = next_data(message);
    packet.message = message;
    packet.kind = PacketKind::kData;
    packet.bytes = packet_bytes(message, packet.sequence);
    packet.header_bytes = static_cast<std::uint32_t>(format_.header_bytes);
    in_ring_[message] = may_send(message);
    if (in_ring_[message]) ring.push_back(message);
    return packet;
  }
  return std::nullopt;
}

void PacketTransport::on_packet(const Packet& packet) {
  if (packet.kind == PacketKind::kData) {
    on_data(packet);
  } else {
    on_control(packet);
  }
}

void PacketTransport::on_event(engine::Engine&, std::uint32_t kind, std::uint64_t arg) {
  if (kind == kTimer) return on_timer(arg);
  const auto message = static_cast<std::uint32_t>(arg);
  completions_[message].start = now();
  on_start(message);
  ready(message);
}

void PacketTransport::on_timer(std::uint64_t) {}

void PacketTransport::ready(std::uint32_t message) {
  if (in_ring_[message] || !may_send(message)) return;
  in_ring_[message] = true;
  const std::uint32_t host = host_of(message);
  ring_[host].push_back(message);
  network_.wake(host);
}

void PacketTransport::finish(std::uint32_t message) {
  SIM_CHECK(!done_[message], message);
  done_[message] = true;
  completions_[message].end = now();
  ++ended_;
  for (const std::uint32_t next : followers_[message]) {
    engine_.at(std::max(now(), traffic_.messages[next].start), engine::Phase::kDispatch, *this, kStart, next);
  }
}

void PacketTransport::reply(const Packet& data, PacketKind kind, std::uint32_t sequence, std::uint64_t word) {
  const std::vector<std::uint32_t>& back = traffic_.messages[data.message].back_routes;
  Packet packet = data;
  packet.kind = kind;
  packet.sequence = sequence;
  packet.word = word;
  packet.trimmed = false;
  packet.bytes = static_cast<std::uint32_t>(format_.header_bytes);
  packet.route = back.size() == 1 ? back[0] : back[random_.below(back.size())];
  network_.send_control(packet);
}

std::uint32_t PacketTransport::packet_bytes(std::uint32_t message, std::uint32_t sequence) const {
  const double left = traffic_.messages[message].bytes - sequence * format_.payload_bytes;
  return static_cast<std::uint32_t>(std::min(left, format_.payload_bytes) + format_.header_bytes);
}

}  // namespace stepcast::network
