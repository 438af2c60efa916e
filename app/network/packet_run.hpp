// app/network/packet_run.hpp — the flows of a traffic file packet by packet: the same fabric, the same routed paths, one of the
// transports of models/network/transport, beside the fluid.
//
// Model    Wires are the network's links; a network card is a host of the packet model, and the GPUs behind it share it. Rates
//          are the links' capacities for payload, headers added, so that a flow alone is as fast as the fluid. Before its
//          first packet a flow waits for what lies inside the hosts and for its message, as the fluid does.
//          Paths: those that the routing gives its queue pairs; even spreading becomes up to 64 hashed paths.
// Ignores  PCIe, memory and sockets under load (only the network queues); links that change during the run
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/network/transport/transport_models.hpp"
#include "models/network/transport_cost.hpp"
#include "sim/run/flow_run.hpp"

namespace stepcast::app {

// Ends by flow. Throws UserError for what packets cannot do: flows inside a host, links that change, too many packets.
std::vector<TimePoint> run_packets(const topology::Fabric& fabric, const run::PathRules& rules, std::span<const run::FlowSpec> flows,
                                   const network::TransportCosts& transports, const network::TransportModel& model, const network::RunOptions& options);

}  // namespace stepcast::app
