#include "models/network/link_network.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/base/check.hpp"

namespace stepcast::network {
namespace {

enum Event : std::uint32_t { kSolve, kEnd };

constexpr double kSource = 0x1.0p20;  // whole numbers, so that what leaves takes away what it brought

std::vector<std::int64_t> whole(const std::vector<double>& sources) {
  std::vector<std::int64_t> units;
  for (const double part : sources) units.push_back(std::llround(part * kSource));
  return units;
}

}  // namespace

LinkNetwork::LinkNetwork(engine::Engine& engine, FlowListener& listener, std::span<const double> capacities, const Congestion& congestion)
    : engine_{engine}, listener_{listener}, congestion_{congestion} {
  for (const double capacity : capacities) add_link(capacity);
}

flow::LinkIndex LinkNetwork::add_link(double capacity) {
  intact_.push_back(capacity);
  sources_.push_back(0);
  return solver_.add_link(capacity);
}

RouteId LinkNetwork::add_route(std::vector<flow::Use> uses, std::vector<double> sources) {
  SIM_CHECK(!uses.empty());
  SIM_CHECK(sources.size() <= uses.size(), sources.size(), uses.size());
  routes_.push_back({std::move(uses), 0.0, 0, whole(sources)});
  return RouteId{routes_.size() - 1};
}

void LinkNetwork::start(RouteId route, double bytes, std::optional<double> rate_cap, std::uint64_t tag) {
  SIM_CHECK(bytes > 0.0, bytes);
  insert({.left = bytes, .rate = 0.0, .since = engine_.now(), .end = {}, .tag = tag, .bytes = bytes, .cap = rate_cap, .route = route});
  ++routes_[route.index()].active;
}

void LinkNetwork::insert(const Flow& flow) {
  const std::vector<flow::Use>& uses = routes_[flow.route.index()].uses;
  const flow::FlowIndex index = flow.cap ? solver_.add_flow(uses, 1.0, *flow.cap) : solver_.add_flow(uses, 1.0);
  if (index.index() >= flows_.size()) flows_.resize(index.index() + 1);
  flows_[index.index()] = flow;
  flows_[index.index()].alive = true;
  count_sources(routes_[flow.route.index()], 1);
  mark_dirty();
}

void LinkNetwork::count_sources(const Route& route, std::int64_t sign) {
  if (is_ideal()) return;
  for (std::size_t u = 0; u < route.sources.size(); ++u) {
    if (route.sources[u] == 0) continue;
    sources_[route.uses[u].link.index()] += sign * route.sources[u];
    recount_.push_back(route.uses[u].link);
  }
}

void LinkNetwork::congest() {
  for (const flow::LinkIndex link : recount_) {
    const auto other = other_congestion_.find(link.value());
    const Congestion& congestion = other == other_congestion_.end() ? congestion_ : other->second;
    solver_.set_capacity(link, intact_[link.index()] * congestion.eta(static_cast<double>(sources_[link.index()]) / kSource));
  }
  recount_.clear();
}

void LinkNetwork::move_route(RouteId id, std::vector<flow::Use> uses, std::vector<double> sources) {
  SIM_CHECK(!uses.empty());
  Route& route = routes_[id.index()];
  const auto same = [](const flow::Use& a, const flow::Use& b) { return a.link == b.link && a.coefficient == b.coefficient; };
  if (std::equal(uses.begin(), uses.end(), route.uses.begin(), route.uses.end(), same)) return;
  std::vector<Flow> moving;
  for (std::uint32_t f = 0; f < flows_.size() && route.active > moving.size(); ++f) {
    Flow& flow = flows_[f];
    if (!flow.alive || flow.route != id) continue;
    settle(flow);
    route.carried += flow.bytes - flow.left;
    flow.bytes = flow.left;
    engine_.cancel(flow.end);
    solver_.remove_flow(flow::FlowIndex{f});
    count_sources(route, -1);
    flow.alive = false;
    moving.push_back(flow);
  }
  if (route.carried > 0.0) {
    carried_before_.resize(solver_.link_count(), 0.0);
    add_carried(route, carried_before_);
    route.carried = 0.0;
  }
  route.uses = std::move(uses);
  route.sources = whole(sources);
  for (Flow& flow : moving) {
    flow.rate = 0.0;
    insert(flow);
  }
}

void LinkNetwork::set_capacity(flow::LinkIndex link, double bytes_per_s) {
  intact_[link.index()] = bytes_per_s;
  solver_.set_capacity(link, bytes_per_s);
  if (!is_ideal()) recount_.push_back(link);
  mark_dirty();
}

void LinkNetwork::watch(flow::LinkIndex link) { watched_.emplace_back(link, std::vector<Sample>{{engine_.now(), 0.0}}); }

std::vector<double> LinkNetwork::carried_by_link() const {
  std::vector<double> carried = carried_before_;
  carried.resize(solver_.link_count(), 0.0);
  for (const Route& route : routes_) add_carried(route, carried);
  return carried;
}

void LinkNetwork::add_carried(const Route& route, std::vector<double>& by_link) const {
  for (const flow::Use& use : route.uses) by_link[use.link.index()] += route.carried * use.coefficient;
}

// Brings what is left up to now.
void LinkNetwork::settle(Flow& flow) {
  const TimePoint now = engine_.now();
  flow.left = std::max(0.0, flow.left - flow.rate * (now - flow.since).seconds());
  flow.since = now;
}

void LinkNetwork::mark_dirty() {
  if (dirty_) return;
  dirty_ = true;
  engine_.at(engine_.now(), engine::Phase::kSolve, *this, kSolve);
}

void LinkNetwork::solve() {
  dirty_ = false;
  congest();
  const TimePoint now = engine_.now();
  for (const flow::FlowIndex index : solver_.solve()) {
    Flow& flow = flows_[index.index()];
    settle(flow);
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
  Route& route = routes_[flow.route.index()];
  route.carried += flow.bytes;
  --route.active;
  solver_.remove_flow(index);
  count_sources(route, -1);
  flows_[index.index()].alive = false;
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
