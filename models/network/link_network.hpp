// models/network/link_network.hpp — traffic as fluids that share links, on the engine's clock.
//
// Model    A flow has work W [B] and uses links with coefficients; all flows share by max-min fairness
//          (sim/flow), so rates change only when a flow starts or ends. Between changes the work left
//          falls linearly; the end is scheduled exactly and moved when the rate moves.
//          Starts and ends of one instant are collected and solved once, in Phase::kSolve. Where congestion control is
//          not ideal, the links that they use first get the capacity for the sources that are then under way
//          (congestion.hpp); this is the only time at which it is evaluated.
// Source   fluid max-min sharing: Bertsekas and Gallager, Data Networks (1992), section 6.5.2
// Valid    transfers long against the round-trip time; latency is the caller's to add
// Ignores  slow start, congestion-control convergence, packet headers (in the link's efficiency)
//          A link's capacity and a route's links may change while flows are under way: these go on from
//          what they have left.
// Cost     one solve per instant with a change, over what the change reaches
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "models/network/congestion.hpp"
#include "sim/base/ids.hpp"
#include "sim/engine/engine.hpp"
#include "sim/flow/solver.hpp"

namespace stepcast::network {

using RouteId = Id<struct RouteTag>;  // a set of link uses that many flows may take

class FlowListener {
 public:
  virtual ~FlowListener() = default;
  // The flow started with `tag` has moved all its bytes; now() is the instant.
  virtual void on_flow_done(std::uint64_t tag) = 0;
};

class LinkNetwork final : public engine::EventTarget {
 public:
  // Capacities in B/s, all positive; link i of the solver is index i.
  LinkNetwork(engine::Engine& engine, FlowListener& listener, std::span<const double> capacities, const Congestion& congestion = {});

  // A link of another network, whose congestion control is another. Before any flow starts.
  void congest_as(flow::LinkIndex link, const Congestion& congestion) { other_congestion_.insert_or_assign(link.value(), congestion); }
  // One more, after those there are.
  flow::LinkIndex add_link(double capacity);
  // `sources`, by use: how many sources a flow of the route brings to the link; where it ends: none.
  RouteId add_route(std::vector<flow::Use> uses, std::vector<double> sources = {});

  // Starts to move `bytes` along the route now. Requires: bytes > 0, the route uses a link.
  void start(RouteId route, double bytes, std::optional<double> rate_cap, std::uint64_t tag);

  // Puts the route, and what is under way on it, on other links from now on.
  void move_route(RouteId route, std::vector<flow::Use> uses, std::vector<double> sources = {});
  [[nodiscard]] bool busy(RouteId route) const { return routes_[route.index()].active > 0; }
  // Flows on the link must keep a rate above 0: move their routes at the same instant.
  void set_capacity(flow::LinkIndex link, double bytes_per_s);

  // Bytes carried by link i so far (coefficients applied), by flows that have ended.
  [[nodiscard]] std::vector<double> carried_by_link() const;

  // Samples of a watched link's load [B/s] at every change, for traces.
  struct Sample {
    TimePoint time;
    double load = 0.0;
  };
  void watch(flow::LinkIndex link);
  [[nodiscard]] const std::vector<std::pair<flow::LinkIndex, std::vector<Sample>>>& watched() const { return watched_; }

  void on_event(engine::Engine& engine, std::uint32_t kind, std::uint64_t arg) override;
  [[nodiscard]] std::string_view target_name() const override { return "network"; }

 private:
  struct Flow {
    double left = 0.0;       // [B] at `since`
    double rate = 0.0;       // [B/s]
    TimePoint since;
    engine::EventId end;
    std::uint64_t tag = 0;
    double bytes = 0.0;      // of those on the route's present links
    std::optional<double> cap;
    RouteId route;
    bool alive = false;
  };
  struct Route {
    std::vector<flow::Use> uses;
    double carried = 0.0;  // [B] of work finished on these links
    std::uint32_t active = 0;  // flows under way
    std::vector<std::int64_t> sources;  // by use, in units of kSource
  };

  void mark_dirty();
  void solve();
  void finish(flow::FlowIndex index);
  void insert(const Flow& flow);
  void settle(Flow& flow);
  void add_carried(const Route& route, std::vector<double>& by_link) const;
  void count_sources(const Route& route, std::int64_t sign);
  void congest();

  engine::Engine& engine_;
  FlowListener& listener_;
  flow::Solver solver_;
  std::vector<Flow> flows_;    // by the solver's flow index
  std::vector<Route> routes_;
  std::vector<double> carried_before_;  // [B] by link, by routes before they moved; empty until one does
  std::vector<std::pair<flow::LinkIndex, std::vector<Sample>>> watched_;
  bool dirty_ = false;
  [[nodiscard]] bool is_ideal() const { return congestion_.ideal() && other_congestion_.empty(); }

  Congestion congestion_;
  std::unordered_map<std::uint32_t, Congestion> other_congestion_;  // by link where it is not congestion_: lookup only
  std::vector<double> intact_;            // [B/s] by link: capacity for one source
  std::vector<std::int64_t> sources_;     // by link, under way, in units of kSource
  std::vector<flow::LinkIndex> recount_;  // links whose sources have changed since the last solve
};

}  // namespace stepcast::network
