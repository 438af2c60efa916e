// models/network/transport/roce_transport.hpp — RoCE with priority flow control alone: no congestion control.
//
// Model    A message is sent at line rate, in order, on one path; only a pause of its NIC's wire stops it. Each
//          packet is acknowledged; the message ends with the last acknowledgement. Nothing is lost, so go-back-N
//          (the recovery) never starts. All unfairness comes from the lossless switches (packet_network.hpp).
// Symbols  xoff, xon [B]: held bytes of one ingress above and below which it is paused and resumed
// Source   60 and 50 packets of 4096 B: ../shared/packet_truth/README.md; behaviour: IEEE 802.1Qbb, RoCEv2
// Valid    lossless fabrics with enough buffer for what arrives during a pause's latency
// Ignores  DCQCN, go-back-N after corruption
// Tests    unit/roce_transport_test, diff/packet_replay_test
#pragma once

#include <vector>

#include "models/network/transport/traffic.hpp"

namespace stepcast::network {

struct RoceParameters {
  double xoff_bytes = 60 * 4096.0;
  double xon_bytes = 50 * 4096.0;
  PacketFormat format = kRoceFormat;
};

std::vector<Completion> run_roce(const Traffic& traffic, const RoceParameters& parameters, const RunOptions& options);

}  // namespace stepcast::network
