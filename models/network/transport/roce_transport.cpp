#include "models/network/transport/roce_transport.hpp"

#include "models/network/transport/packet_transport.hpp"

namespace stepcast::network {
namespace {

SwitchModel lossless(const RoceParameters& parameters) {
  return {.kind = SwitchModel::Kind::kLossless,
          .packet_bytes = static_cast<std::uint32_t>(parameters.format.packet_bytes()),
          .xoff_bytes = parameters.xoff_bytes,
          .xon_bytes = parameters.xon_bytes};
}

class RoceTransport final : public PacketTransport {
 public:
  RoceTransport(const Traffic& traffic, const RoceParameters& parameters, const RunOptions& options)
      : PacketTransport{traffic, parameters.format, lossless(parameters), options}, flows_(traffic.messages.size()) {}

 private:
  struct Flow {
    bool started = false;
    std::uint32_t sent = 0;
    std::uint32_t received = 0;
    std::uint32_t acknowledged = 0;
  };

  void on_start(std::uint32_t message) override { flows_[message].started = true; }
  [[nodiscard]] bool may_send(std::uint32_t message) const override {
    return flows_[message].started && flows_[message].sent < packets(message);
  }
  Packet next_data(std::uint32_t message) override {
    return {.route = traffic().messages[message].routes[flows_[message].sent % traffic().messages[message].routes.size()],
            .sequence = flows_[message].sent++};
  }
  void on_data(const Packet& packet) override { reply(packet, PacketKind::kAck, ++flows_[packet.message].received); }
  void on_control(const Packet& packet) override {
    if (++flows_[packet.message].acknowledged == packets(packet.message)) finish(packet.message);
  }

  std::vector<Flow> flows_;
};

}  // namespace

std::vector<Completion> run_roce(const Traffic& traffic, const RoceParameters& parameters, const RunOptions& options) {
  return RoceTransport{traffic, parameters, options}.run();
}

}  // namespace stepcast::network
