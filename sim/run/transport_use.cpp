#include "sim/run/transport_use.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

namespace stepcast::run {

namespace {

bool copies_cross(topology::LinkKind kind) {
  return kind == topology::LinkKind::kPcie || kind == topology::LinkKind::kC2c || kind == topology::LinkKind::kMemory || kind == topology::LinkKind::kSocket;
}

}  // namespace

MessageCost::MessageCost(const topology::Fabric& fabric, const topology::Router& router, const network::TransportCosts& transports,
                         std::span<const collective::Edge> edges, topology::Router::Axis axis) {
  rate_ = std::numeric_limits<double>::infinity();
  copy_rate_ = rate_;
  for (const collective::Edge& edge : edges) {
    const topology::Path path = router.path(edge.from, edge.to, axis);
    path_latency_ += path.latency;
    for (const topology::Path::Share& share : path.shares) {
      const topology::Bundle& bundle = fabric.bundles[share.bundle];
      const double rate = bundle.capacity.si() / share.share;
      rate_ = std::min(rate_, rate);
      if (copies_cross(fabric.links[bundle.links.front().index()].kind)) copy_rate_ = std::min(copy_rate_, rate);
    }
    if (path.kind == topology::PathKind::kNetwork) cost_ = &transports.of(router.network_between(edge.from, edge.to, axis));
    if (path.kind == topology::PathKind::kPcie && fabric.peer_through_host && cost_ == nullptr) cost_ = &transports.shared_memory;
  }
  if (cost_ == nullptr || !cost_->sockets) return;
  cap_ = cost_->sockets->rate(1);
  rate_ = std::min(rate_, *cap_);
}

Duration MessageCost::latency(Bytes bytes) const {
  return cost_ == nullptr ? path_latency_ : path_latency_ + Duration::from_seconds(cost_->message_s(bytes.si(), copy_rate_));
}

ThreadUse thread_use(std::span<const collective::Edge> edges, collective::Algorithm algorithm, const topology::Fabric& fabric,
                     const network::TransportCosts& transports, std::uint32_t network) {
  const std::optional<network::Sockets>& sockets = transports.of(network).sockets;
  if (!sockets) return {};
  struct Host {
    double out = 0.0;
    double in = 0.0;
    std::set<std::uint32_t> members;
  };
  std::map<std::uint32_t, Host> hosts;
  const std::uint32_t local = fabric.gpus_per_node;
  for (const collective::Edge& edge : edges) {
    Host& from = hosts[edge.from / local];
    Host& to = hosts[edge.to / local];
    from.members.insert(edge.from);
    to.members.insert(edge.to);
    if (fabric.domain_of(edge.from) == fabric.domain_of(edge.to)) continue;
    from.out += edge.share;
    to.in += edge.share;
  }
  const bool all_pairs = algorithm == collective::Algorithm::kPairwise;
  ThreadUse use{.rate = sockets->rate(sockets->channels), .coefficient = 0.0};
  for (const auto& [node, host] : hosts) {
    const std::size_t entries = all_pairs ? host.members.size() : std::min<std::size_t>(host.members.size(), fabric.networks[network].nics);
    use.coefficient = std::max(use.coefficient, std::max(host.out, host.in) / static_cast<double>(entries));
  }
  return use;
}

void set_congestion(network::LinkNetwork& network, const topology::Fabric& fabric, const topology::LinkSlots& of, std::span<const std::uint32_t> slots,
                    const network::TransportCosts& transports) {
  if (fabric.networks.size() == 1) return;
  for (std::uint32_t i = 0; i < slots.size(); ++i) {
    const topology::Link& link = of.link(slots[i]);
    if (link.kind != topology::LinkKind::kNetwork) continue;
    if (const std::uint32_t n = fabric.network_of(link); n > 0) network.congest_as(flow::LinkIndex{i}, transports.of(n).congestion);
  }
}

}  // namespace stepcast::run
