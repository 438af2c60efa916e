#include "models/network/transport/pull_transport.hpp"

#include <deque>

#include "models/network/transport/packet_transport.hpp"

namespace stepcast::network {
namespace {

SwitchModel trimming(const PullParameters& parameters) {
  return {.kind = SwitchModel::Kind::kTrimming,
          .packet_bytes = static_cast<std::uint32_t>(parameters.format.packet_bytes()),
          .queue_bytes = parameters.queue_bytes,
          .ecn_low_bytes = 2 * parameters.queue_bytes,  // never
          .ecn_high_bytes = 2 * parameters.queue_bytes};
}

class PullTransport final : public PacketTransport {
 public:
  PullTransport(const Traffic& traffic, const PullParameters& parameters, const RunOptions& options)
      : PacketTransport{traffic, parameters.format, trimming(parameters), options},
        parameters_{parameters},
        credit_bytes_{parameters.credit_bytes * options.quantum} {
    for (std::uint32_t m = 0; m < traffic.messages.size(); ++m) {
      flows_.push_back({.paths = {parameters.spreading, static_cast<std::uint32_t>(traffic.messages[m].routes.size()), parameters.entropies, random()}});
      if (target_of(m) >= pacers_.size()) pacers_.resize(target_of(m) + 1);
      Pacer& pacer = pacers_[target_of(m)];
      const double rate = traffic.wires[traffic.routes[traffic.messages[m].routes[0]].back()].bytes_per_s;
      pacer.spacing = Duration::from_seconds(credit_bytes_ / (rate * parameters.pull_rate));
    }
  }

 private:
  struct Flow {
    PathChoice paths;
    double credit = 0.0;
    std::uint32_t sent = 0;  // new packets
    std::uint32_t acknowledged = 0;
    std::deque<std::uint32_t> again;  // trimmed, to be sent again
    bool started = false;
    // at the receiver
    std::uint32_t received = 0;
    double unacknowledged = 0.0;
    double owed = 0.0;
    std::uint32_t reported = 0;
    bool queued = false;
    Packet last;  // a packet of the flow, to reply to
  };
  struct Pacer {  // of a receiving host
    std::deque<std::uint32_t> flows;  // that it owes a pull
    Duration spacing;
    bool busy = false;
  };

  void on_start(std::uint32_t message) override {
    flows_[message].started = true;
    flows_[message].credit = parameters_.window_bytes;
  }
  [[nodiscard]] bool may_send(std::uint32_t message) const override {
    const Flow& flow = flows_[message];
    return flow.started && flow.credit > 0.0 && (!flow.again.empty() || flow.sent < packets(message));
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
    flow.credit -= format().packet_bytes();
    return packet;
  }

  void on_data(const Packet& packet) override {
    Flow& flow = flows_[packet.message];
    flow.last = packet;
    if (!packet.trimmed) {
      ++flow.received;
      flow.unacknowledged += packet.bytes;
    }
    flow.owed += format().packet_bytes();
    const bool complete = flow.received == packets(packet.message);
    if (complete) flow.owed = 0.0;
    const std::uint64_t credit = pull_now(packet.message);
    if (packet.trimmed) {
      reply(packet, PacketKind::kNack, packet.sequence, credit);
    } else if (complete || packet.urgent || flow.unacknowledged >= parameters_.ack_every_bytes) {
      reply(packet, PacketKind::kAck, flow.received, credit);
      flow.unacknowledged = 0.0;
    } else if (credit > 0) {
      reply(packet, PacketKind::kPull, 0, credit);
    }
  }

  // Takes the pacer if it is idle; else the flow waits for its turn. Returns the credit to hand out now.
  std::uint64_t pull_now(std::uint32_t message) {
    Pacer& pacer = pacers_[target_of(message)];
    if (flows_[message].owed < credit_bytes_) return 0;
    if (!pacer.busy) {
      pacer.busy = true;
      at_timer(pacer.spacing, target_of(message));
      flows_[message].owed -= credit_bytes_;
      return static_cast<std::uint64_t>(credit_bytes_);
    }
    if (!flows_[message].queued) {
      flows_[message].queued = true;
      pacer.flows.push_back(message);
    }
    return 0;
  }

  void on_timer(std::uint64_t host) override {
    Pacer& pacer = pacers_[host];
    pacer.busy = false;
    while (!pacer.flows.empty()) {
      const std::uint32_t message = pacer.flows.front();
      pacer.flows.pop_front();
      Flow& flow = flows_[message];
      flow.queued = false;
      if (flow.owed < credit_bytes_) continue;
      const std::uint64_t credit = pull_now(message);
      if (flow.owed >= credit_bytes_) pull_now(message);  // back to the end of the line
      reply(flow.last, PacketKind::kPull, 0, credit);
      return;
    }
  }

  void on_control(const Packet& packet) override {
    Flow& flow = flows_[packet.message];
    flow.credit += static_cast<double>(packet.word);
    if (packet.kind == PacketKind::kNack) {
      flow.again.push_back(packet.sequence);
      flow.paths.bad(packet.entropy);
    }
    if (packet.kind == PacketKind::kAck && packet.sequence == packets(packet.message)) return finish(packet.message);
    ready(packet.message);
  }

  PullParameters parameters_;
  double credit_bytes_;  // of one pull: whole quanta
  std::vector<Flow> flows_;
  std::vector<Pacer> pacers_;  // by host
};

}  // namespace

PullParameters ndp_parameters() { return {}; }

PullParameters eqds_parameters() {
  return {.pull_rate = 1.0, .ack_every_bytes = 16384.0, .spreading = Spreading::kEntropies};
}

std::vector<Completion> run_pull(const Traffic& traffic, const PullParameters& parameters, const RunOptions& options) {
  return PullTransport{traffic, parameters, options}.run();
}

}  // namespace stepcast::network
