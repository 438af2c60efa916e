// app/network/recorded_flows.hpp — a recorded case of flows on a fabric, ready to be replayed.
//
// Form     CSV with the columns flow_id, src, dst, size_bytes, start_us, end_us, fct_us, path (others are ignored).
//          path holds the egress links between switches in order, '|' between; empty: the flow was spread over all
//          equal-cost paths, or stays below one ToR and has only one. fct_us runs from the first packet sent to the
//          last acknowledgement received, at the sender.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/network/transport/traffic.hpp"
#include "topologies/htsim_topology.hpp"

namespace stepcast::app {

struct RecordedFlow {
  std::string id;
  double start_us = 0.0;
  double completion_us = 0.0;
};

struct RecordedCase {
  std::vector<RecordedFlow> flows;
  network::Traffic traffic;  // message i is flow i; no ways back
};

// Throws UserError: a field that is none, a host or a hop that the fabric lacks, hops that do not join up.
RecordedCase read_recorded_case(const std::string& file, const topology::HtsimFabric& fabric);

// The traffic with ways back for acknowledgements, which recordings do not tell: all shortest paths for a flow that is
// spread, else one of them that `seed` chooses.
network::Traffic with_ways_back(const RecordedCase& recorded, const topology::HtsimFabric& fabric, std::uint64_t seed);

}  // namespace stepcast::app
