// sim/run/transport_use.hpp — what transports add to the links that traffic uses: models/network/transport_cost.hpp on the
// fabric's paths.
//
// Model    A message from one GPU to another starts to move  L + o + k min(S, c) / h  after it is posted, h the rate of its
//          idle path inside the hosts (PCIe, memory); over sockets it moves at most r of one connection.    (1)
//          A communicator over sockets has one progress thread at each GPU where it enters a host: all its collectives
//          share it. With x the rate of a collective's fluid, s the largest share of an edge set that leaves or
//          reaches a host, and g such GPUs there, x s / g <= r. g: network cards of a host, but no more than its
//          members; between all pairs (all-to-all) its members.                                         (2)
// Ignores  messages of several communicators in one process share its cores only through (5) of transport_cost.hpp
// Tests    unit/transport_use_test
#pragma once

#include <optional>
#include <span>

#include "models/collective/edges.hpp"
#include "models/network/link_network.hpp"
#include "models/network/transport_cost.hpp"
#include "sim/base/units.hpp"
#include "topologies/link_slots.hpp"
#include "topologies/routing.hpp"

namespace stepcast::run {

// A message from one GPU to another.
class MessageCost {
 public:
  // Over edges one after another: to another GPU of the sender's host first (PXN), or straight. `axis`: whose message it is.
  MessageCost(const topology::Fabric& fabric, const topology::Router& router, const network::TransportCosts& transports, std::span<const collective::Edge> edges,
              topology::Router::Axis axis = std::nullopt);

  // Before the first byte moves.
  [[nodiscard]] Duration latency(Bytes bytes) const;
  [[nodiscard]] std::optional<double> rate_cap() const { return cap_; }  // [B/s]
  [[nodiscard]] double rate() const { return rate_; }                    // alone [B/s]
  [[nodiscard]] network::Ahead ahead() const { return cost_ == nullptr ? network::Ahead{} : cost_->ahead; }

 private:
  Duration path_latency_;
  const network::TransportCost* cost_ = nullptr;  // none: nothing beside the links
  std::optional<double> cap_;
  double rate_ = 0.0;
  double copy_rate_ = 0.0;                        // of the links inside the hosts [B/s]
};

// What a collective's fluid puts on the progress threads: coefficient of a link of `rate`.
struct ThreadUse {
  double rate = 0.0;         // [B/s]
  double coefficient = 0.0;  // bytes at the busiest thread for each byte of the fluid; 0: none
};
// Of the edges of a group on one network that cross it.
ThreadUse thread_use(std::span<const collective::Edge> edges, collective::Algorithm algorithm, const topology::Fabric& fabric, const network::TransportCosts& transports,
                     std::uint32_t network = 0);

// Tells the links of networks beside the first their congestion control. `slots`: of the links, by index.
void set_congestion(network::LinkNetwork& network, const topology::Fabric& fabric, const topology::LinkSlots& of, std::span<const std::uint32_t> slots,
                    const network::TransportCosts& transports);

}  // namespace stepcast::run
