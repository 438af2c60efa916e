#include "sim/run/routes.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace stepcast::run {
namespace {

// Round-robin over q QPs: beyond this many messages a QP the shares differ by less than 1 in 64 of each.
constexpr double kManyMessages = 64;

}  // namespace

network::RouteId Routes::of_collective(std::uint32_t communicator, const Way& way) {
  const auto [it, is_new] = collective_routes_.try_emplace({communicator, way});
  if (is_new) {
    if (folded_ != nullptr) {
      const Communicator& c = groups_.communicator(communicator);
      Links links = to_links(folded_->uses.at({.group = c.group, .way = way, .stage = c.stage}));
      if (machine_.transports.of(c.network).sockets) add_threads(links.uses, communicator, way.algorithm, groups_.edges(communicator, way));
      it->second = network_.add_route(std::move(links.uses), std::move(links.sources));
    } else {
      it->second = lay({.communicator = communicator, .way = way});
    }
  }
  return it->second;
}

network::RouteId Routes::of_host_work(RankId rank, HostWork work) {
  const auto [it, is_new] = host_routes_.try_emplace({rank.value(), work});
  if (is_new) {
    if (folded_ != nullptr) {
      Links links = to_links(folded_->uses.at({.kind = FlowClass::Kind::kHost, .stage = plan_.coordinates(rank)[plan::Axis::kPipeline], .work = work}));
      it->second = network_.add_route(std::move(links.uses), std::move(links.sources));
    } else {
      it->second = lay({.host = std::pair{rank, work}});
    }
  }
  return it->second;
}

network::RouteId Routes::of_message(RankId from, RankId to) {
  if (folded_ != nullptr) {
    Links links = to_links(folded_->uses.at({.kind = FlowClass::Kind::kMessage,
                                             .stage = plan_.coordinates(from)[plan::Axis::kPipeline],
                                             .to_stage = plan_.coordinates(to)[plan::Axis::kPipeline]}));
    return network_.add_route(std::move(links.uses), std::move(links.sources));
  }
  return lay({.message = std::pair{from, to}});
}

network::RouteId Routes::lay(Owner owner) {
  Links links = links_of(owner);
  const network::RouteId route = network_.add_route(std::move(links.uses), std::move(links.sources));
  SIM_CHECK(route.index() == owners_.size(), route.value());
  owners_.push_back(std::move(owner));
  return route;
}

// Leaves no load on the links: an idle route has none.
Routes::Links Routes::links_of(Owner& owner) {
  if (owner.host) return to_links(uses_.build_host(owner.host->first.value(), owner.host->second));
  std::vector<collective::Edge> edges;
  TrafficOwner traffic;
  if (owner.message) {
    const auto [from, to] = *owner.message;
    edges = groups_.message_edges(from, to);
    traffic = owner_of_messages(groups_, plan_.coordinates(from)[plan::Axis::kPipeline], plan_.coordinates(to)[plan::Axis::kPipeline]);
  } else {
    edges = groups_.edges(owner.communicator, owner.way);
    traffic = owner_of_collective(groups_, owner.communicator, owner.way.algorithm);
  }
  owner.largest_share = 0.0;
  for (const collective::Edge& edge : edges) owner.largest_share = std::max(owner.largest_share, edge.share);
  const double at_once = owner.message ? 1.0 : sources_at_once(owner.way.algorithm, groups_.communicator(owner.communicator).members.size());
  Links links = to_links(uses_.build(edges, traffic, owner.messages, at_once));
  if (!owner.message) add_threads(links.uses, owner.communicator, owner.way.algorithm, edges);
  owner.placed = paths_.take_placed();
  if (network::follows_load(machine_.paths.policy)) paths_.release(owner.placed);
  return links;
}

void Routes::move(network::RouteId route, Owner& owner) {
  Links links = links_of(owner);
  network_.move_route(route, std::move(links.uses), std::move(links.sources));
}

Routes::Links Routes::to_links(std::span<const BundleUse> uses) {
  Links links;
  for (const BundleUse& use : uses) {
    links.uses.push_back({flow::LinkIndex{use.bundle}, use.coefficient});
    links.sources.push_back(use.sources);
  }
  return links;
}

// A communicator's progress threads are one link of its own, which all its collectives share.
void Routes::add_threads(std::vector<flow::Use>& uses, std::uint32_t communicator, collective::Algorithm algorithm,
                              std::span<const collective::Edge> edges) {
  const Communicator& group = groups_.communicator(communicator);
  if (!machine_.transports.of(group.network).sockets) return;
  const ThreadUse threads = thread_use(on_network({edges.begin(), edges.end()}, machine_, group), algorithm, machine_.fabric, machine_.transports, group.network);
  if (threads.coefficient == 0.0) return;
  const auto known = thread_links_.find(communicator);
  const flow::LinkIndex link = known != thread_links_.end() ? known->second : network_.add_link(threads.rate);
  thread_links_.emplace(communicator, link);
  uses.push_back({link, threads.coefficient});
}

// Before a flow starts. A route that nothing uses is laid again where the policy looks at each transfer.
void Routes::prepare(network::RouteId route, double bytes) {
  const PathRules& rules = machine_.paths;
  if (folded_ != nullptr || !rules.by_link() || network_.busy(route)) return;
  Owner& owner = owners_[route.index()];
  std::uint64_t messages = 0;
  if (rules.qp_mode == network::QpMode::kRoundRobin && rules.qps > 1) {
    const double count = std::ceil(bytes * owner.largest_share / rules.message.si());
    if (count < kManyMessages * rules.qps) messages = static_cast<std::uint64_t>(count);
  }
  const bool moves = messages != owner.messages || rules.policy == network::PathPolicy::kAdaptive ||
                     (rules.policy == network::PathPolicy::kFlowlet && engine_.now() - owner.idle_since > rules.flowlet_gap) ||
                     is_broken(owner);
  owner.messages = messages;
  if (moves) move(route, owner);
  if (network::follows_load(rules.policy)) paths_.hold(owner.placed);
}

// After a flow has ended.
void Routes::leave(network::RouteId route) {
  if (folded_ != nullptr || !network::follows_load(machine_.paths.policy) || network_.busy(route)) return;
  Owner& owner = owners_[route.index()];
  paths_.release(owner.placed);
  owner.idle_since = engine_.now();
}

bool Routes::is_broken(const Owner& owner) const {
  return std::any_of(owner.placed.begin(), owner.placed.end(), [&](const auto& part) { return paths_.capacity(part.first) == 0.0; });
}

// At one instant: capacities, then the routes that the policy now lays otherwise. Load alone moves nothing.
void Routes::change_links(std::uint32_t change) {
  std::vector<std::uint32_t> slots;
  paths_.apply(machine_.paths.changes[change], slots);
  for (const std::uint32_t slot : slots) network_.set_capacity(flow::LinkIndex{slot}, paths_.capacity(slot));
  const bool by_load = network::follows_load(machine_.paths.policy);
  for (std::uint32_t r = 0; r < owners_.size(); ++r) {
    Owner& owner = owners_[r];
    const network::RouteId route{r};
    if (by_load && !is_broken(owner)) continue;
    const bool holds = by_load && network_.busy(route);
    if (holds) paths_.release(owner.placed);
    move(route, owner);
    if (holds) paths_.hold(owner.placed);
  }
}

}  // namespace stepcast::run
