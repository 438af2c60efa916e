// app/network/flow_report.hpp — what flows alone on a fabric did: completion times, how evenly links were used, which were
// busiest.
//
// Utilisation  of a link: bytes carried / (capacity * makespan)
// Imbalance    of a tier (links from one kind of device to another): most bytes on a link / mean over its links
// Fairness     Jain's index of the flows' mean rates r: (sum r)^2 / (n sum r^2); 1: all alike
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "app/cli/terminal.hpp"
#include "sim/run/flow_run.hpp"
#include "topologies/fabric.hpp"
#include "topologies/link_slots.hpp"

namespace stepcast::app {

struct LinkLoad {
  std::string name;
  double bytes = 0.0;
  double utilisation = 0.0;
};

struct TierLoad {
  topology::DeviceKind from = topology::DeviceKind::kNic;
  topology::DeviceKind to = topology::DeviceKind::kLeaf;
  std::size_t links = 0;        // or bundles of links that share evenly
  double mean_utilisation = 0.0;
  double most_utilisation = 0.0;
  double imbalance = 0.0;       // 0: nothing went there
};

// The same flows, packet by packet.
struct PacketReport {
  std::string transport;
  double makespan_s = 0.0;
  double mean_s = 0.0;
  double p99_s = 0.0;
};

struct FlowReport {
  std::string name;
  std::string fabric;
  std::string routing;
  std::string transport;
  std::size_t flows = 0;
  double bytes = 0.0;
  double makespan_s = 0.0;      // from the first start to the last end
  double mean_s = 0.0;          // of completion times
  double median_s = 0.0;
  double p99_s = 0.0;           // nearest rank
  double fairness = 0.0;
  std::vector<TierLoad> tiers;
  std::vector<LinkLoad> busiest;
  std::uint64_t events = 0;
  std::optional<PacketReport> packets{};
};

// Requires: at least one flow.
FlowReport make_report(std::span<const run::FlowSpec> flows, const run::FlowRunResult& result, const topology::LinkSlots& slots);

PacketReport make_packet_report(std::string_view transport, std::span<const run::FlowSpec> flows, std::span<const TimePoint> ends);

std::string to_text(const FlowReport& report, const Terminal& terminal);
std::string to_json(const FlowReport& report);
// A row a flow: flow, from, to, size_bytes, start_s, end_s, completion_s, rate_bytes_per_s.
std::string to_csv(std::span<const run::FlowSpec> flows, const run::FlowRunResult& result);

}  // namespace stepcast::app
