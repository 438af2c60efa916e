#include "models/network/transport/uec_transport.hpp"

#include <algorithm>
#include <cmath>
#include <deque>

#include "models/network/transport/packet_transport.hpp"

namespace stepcast::network {
namespace {

double round_trip_s(const Traffic& traffic, const Route& route, const PacketFormat& format) {
  double time_s = 0.0;
  for (const std::uint32_t wire : route) {
    const Wire& w = traffic.wires[wire];
    time_s += 2 * w.latency.seconds() + (format.packet_bytes() + format.header_bytes) / w.bytes_per_s;
  }
  return time_s;
}

NsccScale scale_of(const Traffic& traffic, const UecParameters& parameters, std::uint32_t quantum) {
  double base_s = 0.0;
  double rate = 0.0;
  for (const Message& message : traffic.messages) {
    for (const std::uint32_t route : message.routes) {
      base_s = std::max(base_s, round_trip_s(traffic, traffic.routes[route], parameters.format));
      rate = std::max(rate, traffic.wires[traffic.routes[route].front()].bytes_per_s);
    }
  }
  NsccScale scale = nscc_scale(rate, base_s, parameters.format, parameters.control);
  scale.least_bytes = parameters.format.times(quantum).packet_bytes();
  return scale;
}

// Queues of one base round trip, in whole packets.
SwitchModel switches(const NsccScale& scale, const UecParameters& parameters) {
  const double queue_bytes = std::ceil(scale.base_s * scale.rate / scale.packet_bytes) * scale.packet_bytes;
  return {.kind = SwitchModel::Kind::kTrimming,
          .packet_bytes = static_cast<std::uint32_t>(parameters.format.packet_bytes()),
          .queue_bytes = queue_bytes,
          .ecn_low_bytes = parameters.ecn_low * queue_bytes,
          .ecn_high_bytes = parameters.ecn_high * queue_bytes};
}

class UecTransport final : public PacketTransport {
 public:
  UecTransport(const Traffic& traffic, const UecParameters& parameters, const NsccScale& scale, const RunOptions& options)
      : PacketTransport{traffic, parameters.format, switches(scale, parameters), options}, parameters_{parameters} {
    for (const Message& message : traffic.messages) {
      flows_.push_back({.paths = {parameters.spreading, static_cast<std::uint32_t>(message.routes.size()), parameters.entropies, random()},
                        .control = {scale, parameters.control}});
    }
  }

 private:
  struct Flow {
    PathChoice paths;
    Nscc control;
    double in_flight = 0.0;
    std::uint32_t sent = 0;  // new packets
    std::uint64_t acknowledged_bytes = 0;
    std::deque<std::uint32_t> again;  // trimmed, to be sent again
    bool started = false;
    // at the receiver
    std::uint32_t received = 0;
    std::uint64_t received_bytes = 0;
    double unacknowledged = 0.0;
    bool waiting = false;  // a timer will acknowledge
    Packet last;           // of those not acknowledged
  };

  void on_start(std::uint32_t message) override { flows_[message].started = true; }

  [[nodiscard]] bool may_send(std::uint32_t message) const override {
    const Flow& flow = flows_[message];
    if (!flow.started || (flow.again.empty() && flow.sent == packets(message))) return false;
    const std::uint32_t next = flow.again.empty() ? flow.sent : flow.again.front();
    return flow.in_flight + packet_bytes(message, next) <= flow.control.window_bytes();
  }

  Packet next_data(std::uint32_t message) override {
    Flow& flow = flows_[message];
    Packet packet;
    if (flow.again.empty()) {
      packet.sequence = flow.sent++;
    } else {
      packet.sequence = flow.again.front();
      packet.urgent = true;
      flow.again.pop_front();
    }
    const PathChoice::Path path = flow.paths.next(random());
    packet.route = traffic().messages[message].routes[path.route];
    packet.entropy = path.entropy;
    flow.in_flight += packet_bytes(message, packet.sequence);
    const bool fills = flow.in_flight + format().packet_bytes() >= flow.control.window_bytes();
    if (flow.sent == packets(message) || fills) packet.urgent = true;
    return packet;
  }

  void on_data(const Packet& packet) override {
    Flow& flow = flows_[packet.message];
    if (packet.trimmed) return reply(packet, PacketKind::kNack, packet.sequence);
    ++flow.received;
    flow.received_bytes += packet.bytes;
    flow.unacknowledged += packet.bytes;
    const bool edge = flow.received == 1 || flow.received == packets(packet.message);
    if (edge || packet.urgent || packet.marked || flow.unacknowledged >= parameters_.ack_every_bytes) return acknowledge(packet);
    flow.last = packet;
    if (flow.waiting) return;
    flow.waiting = true;
    at_timer(Duration::from_seconds(parameters_.latest_ack_s), packet.message);
  }

  void acknowledge(const Packet& packet) {
    Flow& flow = flows_[packet.message];
    flow.unacknowledged = 0.0;
    reply(packet, PacketKind::kAck, flow.received, flow.received_bytes);
  }

  // A sender whose window shrank below what is in flight waits for bytes that ask for no acknowledgement.
  void on_timer(std::uint64_t message) override {
    Flow& flow = flows_[message];
    flow.waiting = false;
    if (flow.unacknowledged > 0.0) acknowledge(flow.last);
  }

  void on_control(const Packet& packet) override {
    if (packet.kind == PacketKind::kNack) {
      on_nack(packet);
    } else {
      on_ack(packet);
    }
    if (!done(packet.message)) ready(packet.message);
  }

  void on_nack(const Packet& packet) {
    Flow& flow = flows_[packet.message];
    const double bytes = packet_bytes(packet.message, packet.sequence);
    flow.control.on_trim(now().seconds(), (now() - packet.sent).seconds(), bytes, flow.in_flight);
    flow.in_flight -= bytes;
    flow.again.push_back(packet.sequence);
    flow.paths.bad(packet.entropy);
  }

  // Acknowledgements may overtake each other: what a late one tells of was known already, but not its delay.
  void on_ack(const Packet& packet) {
    Flow& flow = flows_[packet.message];
    if (done(packet.message)) return;
    const double bytes = packet.word > flow.acknowledged_bytes ? static_cast<double>(packet.word - flow.acknowledged_bytes) : 0.0;
    flow.acknowledged_bytes = std::max(flow.acknowledged_bytes, packet.word);
    flow.in_flight -= bytes;
    if (packet.marked) {
      flow.paths.bad(packet.entropy);
    } else {
      flow.paths.good(packet.entropy);
    }
    flow.control.on_ack(now().seconds(), (now() - packet.sent).seconds(), packet.marked, bytes, flow.in_flight);
    if (packet.sequence == packets(packet.message)) finish(packet.message);
  }

  UecParameters parameters_;
  std::vector<Flow> flows_;
};

}  // namespace

std::vector<Completion> run_uec(const Traffic& traffic, const UecParameters& parameters, const RunOptions& options) {
  return UecTransport{traffic, parameters, scale_of(traffic, parameters, options.quantum), options}.run();
}

}  // namespace stepcast::network
