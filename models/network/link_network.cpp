#include "models/network/link_network.hpp"

#include <algorithm>
#include <utility>

#include "sim/base/check.hpp"

namespace stepcast::network {
namespace {

enum Event : std::uint32_t { kSolve, kEnd };

}  // namespace

LinkNetwork::LinkNetwork(engine::Engine& engine, FlowListener& listener, std::span<const double> capacities)
    : engine_{engine}, listener_{listener} {
  for (const double capacity : capacities) solver_.add_link(capacity);
}

RouteId LinkNetwork::add_route(std::vector<flow::Use> uses) {
  SIM_CHECK(!uses.empty());
  routes_.push_back({std::move(uses), 0.0});
  return RouteId{routes_.size() - 1};
}

void LinkNetwork::start(RouteId route, double bytes, std::optional<double> rate_cap, std::uint64_t tag) {
  SIM_CHECK(bytes > 0.0, bytes);
  const std::vector<flow::Use>& uses = routes_[route.index()].uses;
  const flow::FlowIndex flow = rate_cap ? solver_.add_flow(uses, 1.0, *rate_cap) : solver_.add_flow(uses, 1.0);
  if (flow.index() >= flows_.size()) flows_.resize(flow.index() + 1);
  flows_[flow.index()] = {.left = bytes, .rate = 0.0, .since = engine_.now(), .end = {}, .tag = tag, .bytes = bytes, .route = route};
  mark_dirty();
}

void LinkNetwork::watch(flow::LinkIndex link) { watched_.emplace_back(link, std::vector<Sample>{{engine_.now(), 0.0}}); }

std::vector<double> LinkNetwork::carried_by_link() const {
  std::vector<double> carried(solver_.link_count(), 0.0);
  for (const Route& route : routes_) {
    for (const flow::Use& use : route.uses) carried[use.link.index()] += route.carried * use.coefficient;
  }
  return carried;
}

void LinkNetwork::mark_dirty() {
  if (dirty_) return;
  dirty_ = true;
  engine_.at(engine_.now(), engine::Phase::kSolve, *this, kSolve);
}

void LinkNetwork::solve() {
  dirty_ = false;
  const TimePoint now = engine_.now();
  for (const flow::FlowIndex index : solver_.solve()) {
    Flow& flow = flows_[index.index()];
    flow.left = std::max(0.0, flow.left - flow.rate * (now - flow.since).seconds());
    flow.since = now;
    flow.rate = solver_.rate(index);
    SIM_CHECK(flow.rate > 0.0, index.value(), flow.left);
    engine_.cancel(flow.end);
    flow.end = engine_.after(Duration::from_seconds(flow.left / flow.rate), engine::Phase::kCompletion, *this, kEnd, index.value());
  }
  for (auto& [link, samples] : watched_) {
    const double load = solver_.load(link);
    if (load == samples.back().load) continue;
    if (samples.back().time == now) samples.pop_back();
    samples.push_back({now, load});
  }
}

void LinkNetwork::finish(flow::FlowIndex index) {
  const Flow flow = flows_[index.index()];
  routes_[flow.route.index()].carried += flow.bytes;
  solver_.remove_flow(index);
  mark_dirty();
  listener_.on_flow_done(flow.tag);
}

void LinkNetwork::on_event(engine::Engine&, std::uint32_t kind, std::uint64_t arg) {
  if (kind == kSolve) {
    solve();
  } else {
    finish(flow::FlowIndex{static_cast<std::uint32_t>(arg)});
  }
}

}  // namespace stepcast::network
