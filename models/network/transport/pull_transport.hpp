// models/network/transport/pull_transport.hpp — receiver-driven transports on trimming switches: NDP and EQDS.
//
// Model    A sender starts with `window` bytes of credit and sends them at line rate, whatever the network's state.
//          For every packet that arrives, whole or trimmed, the receiver owes its sender as much credit again; it
//          hands out what it owes to all its senders in turn, `credit` bytes a pull, at `pull_rate` of its link's
//          rate. Trimmed packets are sent again, before new ones. Overload inside the network is never seen by the
//          receiver's clock: senders that collide there keep sending at line rate and are trimmed in proportion.
//          A pull that finds the pacer idle rides on the acknowledgement.
// Symbols  window, credit, queue, ack_every [B], pull_rate [1]
// Source   NDP: Handley et al., SIGCOMM 2017; EQDS: Olteanu et al., NSDI 2022. Windows, queues, entropies:
//          ../shared/packet_truth/README.md; pull rates and acknowledgement sizes: defaults of csg-htsim, with which the
//          recordings were made. EQDS's pacer counts 38 B of Ethernet framing and takes 0.99 of that: 1.0 here.
// Valid    few enough senders a receiver that trimmed headers fit
// Ignores  time-outs (no control packet is lost), return to sender, congestion control of oversubscribed cores
// Tests    unit/pull_transport_test, diff/packet_replay_test
#pragma once

#include <vector>

#include "models/network/transport/path_choice.hpp"
#include "models/network/transport/traffic.hpp"

namespace stepcast::network {

struct PullParameters {
  double window_bytes = 200 * 4160.0;  // sent before the first pull
  double queue_bytes = 60 * 4160.0;    // a switch's egress queue
  double credit_bytes = 4160.0;        // of one pull
  double pull_rate = 0.99;             // of the receiver's link
  double ack_every_bytes = 1.0;        // acknowledge when so many bytes have come in since the last time
  Spreading spreading = Spreading::kPermuted;
  std::uint32_t entropies = 128;
  PacketFormat format = kRoceFormat;
};

PullParameters ndp_parameters();
PullParameters eqds_parameters();

std::vector<Completion> run_pull(const Traffic& traffic, const PullParameters& parameters, const RunOptions& options);

}  // namespace stepcast::network
