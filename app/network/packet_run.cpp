#include "app/network/packet_run.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "sim/base/check.hpp"
#include "sim/base/diagnostic.hpp"
#include "sim/run/link_paths.hpp"
#include "sim/run/transport_use.hpp"

namespace stepcast::app {
namespace {

constexpr std::uint32_t kSpreadPaths = 64;
constexpr double kMostPackets = 2e7;  // minutes

[[noreturn]] void refuse(std::string path, std::string problem, std::string expected, std::string got = {}) {
  throw UserError(Diagnostic{.path = std::move(path), .problem = std::move(problem), .expected = std::move(expected), .got = std::move(got)});
}

run::PathRules single_paths(run::PathRules rules) {
  if (!network::spreads(rules.policy)) return rules;
  rules.policy = network::PathPolicy::kEEcmp;
  rules.source_port = network::SourcePort::kRandom;
  rules.hash = network::HashFunction::kIdeal;
  rules.qps = kSpreadPaths;
  rules.qp_mode = network::QpMode::kSplit;
  return rules;
}

class Packets {
 public:
  Packets(const topology::Fabric& fabric, const run::PathRules& rules) : fabric_{fabric}, router_{fabric}, rules_{single_paths(rules)}, paths_{fabric, rules_} {
    wire_of_link_.assign(fabric.links.size(), UINT32_MAX);
    for (std::size_t l = 0; l < fabric.links.size(); ++l) {
      const topology::Link& link = fabric.links[l];
      if (link.kind != topology::LinkKind::kNetwork) continue;
      wire_of_link_[l] = static_cast<std::uint32_t>(traffic_.wires.size());
      traffic_.wires.push_back({link.capacity().si() * network::kRoceFormat.wire_factor(), link.latency, link.from.value(), link.to.value()});
    }
  }

  void add(std::uint32_t f, const run::FlowSpec& flow, const network::TransportCosts& transports) {
    const topology::Router::Crossing crossing = router_.crossing(flow.from, flow.to, flow.axis);
    if (crossing.ways.empty()) refuse("--transport", "packets only cross the network", "flows between hosts", fmt::format("GPU {} to GPU {}, in one host", flow.from, flow.to));
    const collective::Edge edge{flow.from, flow.to, 1.0};
    const Duration waits = run::MessageCost{fabric_, router_, transports, {&edge, 1}, flow.axis}.latency(flow.bytes);
    for (const topology::Router::Crossing::Way& way : crossing.ways) {
      network::Message message;
      message.bytes = flow.bytes.si() * way.weight;
      message.routes = routes(f, way.from_port, way.to_port);
      message.back_routes = routes(f, way.to_port, way.from_port);
      message.start = TimePoint::at(flow.start + std::max(Duration{}, waits - latency(message.routes.front())));
      packets_ += message.bytes / network::kRoceFormat.payload_bytes * static_cast<double>(traffic_.routes[message.routes.front()].size());
      traffic_.messages.push_back(std::move(message));
      flow_of_message_.push_back(f);
    }
    if (packets_ > kMostPackets) refuse("--transport", "too many packets", fmt::format("at most {:.0g} packets times wires; --quantum moves several as one", kMostPackets));
  }

  std::vector<TimePoint> run(std::size_t flows, const network::TransportModel& model, const network::RunOptions& options) const {
    const std::vector<network::Completion> done = model.run(traffic_, options);
    std::vector<TimePoint> ends(flows);
    for (std::size_t m = 0; m < done.size(); ++m) ends[flow_of_message_[m]] = std::max(ends[flow_of_message_[m]], done[m].end);
    return ends;
  }

 private:
  Duration latency(std::uint32_t route) const {
    Duration sum;
    for (const std::uint32_t wire : traffic_.routes[route]) sum += traffic_.wires[wire].latency;
    return sum;
  }

  // Distinct paths of the connection's queue pairs, as routes.
  std::vector<std::uint32_t> routes(std::uint32_t f, std::uint32_t from_port, std::uint32_t to_port) {
    const run::Connection connection{.from_port = from_port, .to_port = to_port, .local_qp = paths_.first_qp(from_port, f, ordinal_[from_port]++),
                                     .remote_qp = paths_.first_qp(to_port, f, ordinal_[to_port]++)};
    std::vector<run::BundleUse> uses;
    paths_.add(connection, 1.0, 0, uses);
    std::vector<std::uint32_t> found;
    network::Route route;
    for (const run::BundleUse& use : uses) {
      const topology::Link& link = paths_.slots().link(use.bundle);
      route.push_back(wire_of_link_[static_cast<std::size_t>(&link - fabric_.links.data())]);
      if (fabric_.devices[link.to.index()].kind != topology::DeviceKind::kNic) continue;
      const auto [it, is_new] = route_index_.try_emplace(route, static_cast<std::uint32_t>(traffic_.routes.size()));
      if (is_new) traffic_.routes.push_back(route);
      if (std::find(found.begin(), found.end(), it->second) == found.end()) found.push_back(it->second);
      route.clear();
    }
    SIM_CHECK(route.empty() && !found.empty(), from_port, to_port);
    return found;
  }

  const topology::Fabric& fabric_;
  topology::Router router_;
  run::PathRules rules_;
  run::LinkPaths paths_;
  network::Traffic traffic_;
  std::vector<std::uint32_t> wire_of_link_;
  std::vector<std::uint32_t> flow_of_message_;
  std::map<network::Route, std::uint32_t> route_index_;
  std::map<std::uint32_t, std::uint32_t> ordinal_;  // by port
  double packets_ = 0.0;
};

}  // namespace

std::vector<TimePoint> run_packets(const topology::Fabric& fabric, const run::PathRules& rules, std::span<const run::FlowSpec> flows,
                                   const network::TransportCosts& transports, const network::TransportModel& model, const network::RunOptions& options) {
  if (rules.changes_later()) refuse("--transport", "packets run over links that stay", "failures at 0 s only");
  if (fabric.ports.empty()) refuse("--transport", "packets only cross the network", "a cluster of several nodes");
  Packets packets{fabric, rules};
  for (std::uint32_t f = 0; f < flows.size(); ++f) packets.add(f, flows[f], transports);
  return packets.run(flows.size(), model, options);
}

}  // namespace stepcast::app
