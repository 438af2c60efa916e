// models/network/transport/fluid_transport.hpp — messages as plain max-min fluids: the yardstick for transports.
//
// Model    t = t_fluid + t_fixed                                                              (1)
//          t_fluid  moves  bytes * (p + h) / p  over all wires of the route at the max-min fair rate, solved anew
//                   at every start and end (models/network/link_network); spread over n routes, each carries 1/n
//          t_fixed = 2 sum_i latency_i + sum over all wires but the last of (p + h) / rate_i   (2)
//                   data and returning acknowledgement, and store and forward of the last packet
// Symbols  p, h [B] payload and header of a packet; rate_i [B/s], latency_i [s] of wire i
// Source   ../shared/packet_truth/README.md, "How maxmin/ was computed"
// Valid    messages long against the round trip; fair transports
// Ignores  the whole of congestion control: ramps, back-pressure, losses, unfairness; the acknowledgements' bytes
// Tests    unit/fluid_transport_test (worked by hand), diff/packet_replay_test (../shared/packet_truth/maxmin)
#pragma once

#include <vector>

#include "models/network/transport/traffic.hpp"

namespace stepcast::network {

// By message. Messages that follow each other in a circle are a broken invariant.
std::vector<Completion> run_fluid(const Traffic& traffic, const PacketFormat& format);

}  // namespace stepcast::network
