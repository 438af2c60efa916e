#include "sim/run/flow_run.hpp"

#include <numeric>
#include <optional>

#include "models/network/link_network.hpp"
#include "sim/base/check.hpp"
#include "sim/engine/engine.hpp"
#include "sim/run/traffic.hpp"
#include "sim/run/transport_use.hpp"

namespace stepcast::run {
namespace {

enum Event : std::uint32_t { kBegin, kChange };

std::vector<double> capacities_of(const LinkPaths& paths) {
  std::vector<double> capacities;
  for (std::uint32_t slot = 0; slot < paths.slots().size(); ++slot) capacities.push_back(paths.capacity(slot));
  return capacities;
}

class FlowRun final : public engine::EventTarget, public network::FlowListener {
 public:
  FlowRun(const topology::Router& router, LinkPaths& paths, std::span<const FlowSpec> flows, const network::TransportCosts& transports)
      : paths_{paths}, flows_{flows}, builder_{router, paths}, network_{engine_, *this, capacities_of(paths), transports.network.congestion}, under_way_(flows.size()) {
    std::vector<std::uint32_t> slots(paths.slots().size());
    std::iota(slots.begin(), slots.end(), 0U);
    set_congestion(network_, paths.fabric(), paths.slots(), slots, transports);
    result_.end.resize(flows.size());
    for (std::uint32_t f = 0; f < flows.size(); ++f) {
      const collective::Edge edge{flows[f].from, flows[f].to, 1.0};
      const MessageCost cost{paths.fabric(), router, transports, {&edge, 1}, flows[f].axis};
      caps_.push_back(cost.rate_cap());
      engine_.at(TimePoint::at(flows[f].start + cost.latency(flows[f].bytes)), engine::Phase::kDispatch, *this, kBegin, f);
    }
    const std::vector<topology::LinkChange>& changes = paths.rules().changes;
    for (std::uint32_t c = 0; c < changes.size(); ++c) {
      if (changes[c].at > Duration{}) engine_.at_daemon(TimePoint::at(changes[c].at), engine::Phase::kFault, *this, kChange, c);
    }
  }

  FlowRunResult run() {
    const engine::StopReason reason = engine_.run();
    SIM_CHECK(reason == engine::StopReason::kDrained, engine_.describe_pending());
    result_.carried = network_.carried_by_link();
    result_.events = engine_.events_fired();
    return std::move(result_);
  }

  void on_event(engine::Engine&, std::uint32_t kind, std::uint64_t arg) override {
    if (kind == kBegin) {
      begin(static_cast<std::uint32_t>(arg));
    } else {
      change(static_cast<std::uint32_t>(arg));
    }
  }

  void on_flow_done(std::uint64_t tag) override {
    result_.end[tag] = engine_.now();
    paths_.release(under_way_[tag]->placed);
    under_way_[tag].reset();
  }

 private:
  struct UnderWay {
    network::RouteId route;
    LinkPaths::Placed placed;
  };

  struct Links {
    std::vector<flow::Use> uses;
    std::vector<double> sources;
  };

  // The links of the flow's connection, and what it puts on them for those that follow the load.
  Links links_of(std::uint32_t f, LinkPaths::Placed& placed) {
    const collective::Edge edge{flows_[f].from, flows_[f].to, 1.0};
    const auto message = paths_.rules().message.count();
    const auto messages = static_cast<std::uint64_t>((flows_[f].bytes.count() + message - 1) / message);
    Links links;
    for (const BundleUse& use : builder_.build({&edge, 1}, TrafficOwner{f, flows_[f].axis}, messages)) {
      links.uses.push_back({flow::LinkIndex{use.bundle}, use.coefficient});
      links.sources.push_back(use.sources);
    }
    placed = paths_.take_placed();
    return links;
  }

  void begin(std::uint32_t f) {
    UnderWay& flow = under_way_[f].emplace();
    Links links = links_of(f, flow.placed);
    flow.route = network_.add_route(std::move(links.uses), std::move(links.sources));
    network_.start(flow.route, flows_[f].bytes.si(), caps_[f], f);
  }

  void change(std::uint32_t index) {
    std::vector<std::uint32_t> slots;
    paths_.apply(paths_.rules().changes[index], slots);
    for (const std::uint32_t slot : slots) network_.set_capacity(flow::LinkIndex{slot}, paths_.capacity(slot));
    for (std::uint32_t f = 0; f < under_way_.size(); ++f) {
      if (!under_way_[f]) continue;
      paths_.release(under_way_[f]->placed);
      Links links = links_of(f, under_way_[f]->placed);
      network_.move_route(under_way_[f]->route, std::move(links.uses), std::move(links.sources));
    }
  }

  LinkPaths& paths_;
  std::span<const FlowSpec> flows_;
  UseBuilder builder_;
  engine::Engine engine_;
  network::LinkNetwork network_;
  std::vector<std::optional<UnderWay>> under_way_;
  std::vector<std::optional<double>> caps_;  // [B/s] by flow
  FlowRunResult result_;
};

}  // namespace

FlowRunResult run_flows(const topology::Router& router, LinkPaths& paths, std::span<const FlowSpec> flows, const network::TransportCosts& transports) {
  return FlowRun{router, paths, flows, transports}.run();
}

}  // namespace stepcast::run
