// models/network/transport/uec_transport.hpp — UEC: a congestion window at the sender, on trimming switches.
//
// Model    A sender keeps at most the window of nscc.hpp in flight, packets that were trimmed before new ones. Receivers
//          acknowledge every `ack_every` bytes, and at once what is marked, sent again, fills the window, comes first or last;
//          no later than `latest_ack`, so that a window which shrank below what is in flight opens again.
//          Switches trim above one base round trip of bytes and mark from ecn_low to ecn_high of that. Packets are
//          spread by header values (path_choice.hpp), those that came back clean first.
// Symbols  ack_every [B], latest_ack [s], ecn_low and ecn_high [1] of the queue
// Source   UE specification 1.0; queue, entropies: ../shared/packet_truth/README.md; acknowledgements, marking:
//          defaults of uet-htsim, with which the recordings were made. latest_ack stands in for its time-out
//          (15 us + six queues' drain times at 400 Gb/s).
// Valid    trimming fabrics of one link rate
// Ignores  receiver credit, time-outs (no control packet is lost), connection set-up
// Tests    unit/uec_transport_test, diff/packet_replay_test
#pragma once

#include <vector>

#include "models/network/transport/nscc.hpp"
#include "models/network/transport/path_choice.hpp"
#include "models/network/transport/traffic.hpp"

namespace stepcast::network {

struct UecParameters {
  NsccParameters control;
  double ack_every_bytes = 16384.0;
  double latest_ack_s = 90e-6;
  double ecn_low = 0.2;
  double ecn_high = 0.8;
  Spreading spreading = Spreading::kRecycled;
  std::uint32_t entropies = 128;
  PacketFormat format = kUecFormat;
};

std::vector<Completion> run_uec(const Traffic& traffic, const UecParameters& parameters, const RunOptions& options);

}  // namespace stepcast::network
