// sim/run/flow_run.hpp — flows between GPUs alone on a fabric, from first byte sent to last received.
//
// Model    A flow begins to move one path latency, and what its transport costs a message (transport_use.hpp), after its
//          start, over the path that its connection is given then (link_paths.hpp), and shares links by max-min
//          fairness until all bytes are over; over sockets it moves no faster than one connection.
//          A link that changes under way moves what crosses it to the paths that are left.
// Valid    transfers long against the round-trip time
// Ignores  the transport's own behaviour under contention (models/network/transport)
// Cost     O(hops) a flow, and one incremental solve for each instant with a change
// Tests    unit/flow_run_test
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/network/transport_cost.hpp"
#include "sim/run/link_paths.hpp"
#include "topologies/routing.hpp"

namespace stepcast::run {

struct FlowSpec {
  std::uint32_t from = 0;  // global GPU index
  std::uint32_t to = 0;    // another one
  Bytes bytes;             // > 0
  Duration start;
  topology::Router::Axis axis = std::nullopt;  // as whose traffic it travels
};

struct FlowRunResult {
  std::vector<TimePoint> end;   // by flow
  std::vector<double> carried;  // [B] by slot of LinkPaths::slots()
  std::uint64_t events = 0;
};

FlowRunResult run_flows(const topology::Router& router, LinkPaths& paths, std::span<const FlowSpec> flows,
                        const network::TransportCosts& transports = {});

}  // namespace stepcast::run
