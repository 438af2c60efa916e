#include "sim/run/flow_run.hpp"

#include <optional>

#include "models/network/link_network.hpp"
#include "sim/base/check.hpp"
#include "sim/engine/engine.hpp"
#include "sim/run/traffic.hpp"

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
  FlowRun(const topology::Router& router, LinkPaths& paths, std::span<const FlowSpec> flows)
      : paths_{paths}, flows_{flows}, builder_{router, paths}, network_{engine_, *this, capacities_of(paths)}, under_way_(flows.size()) {
    result_.end.resize(flows.size());
    for (std::uint32_t f = 0; f < flows.size(); ++f) {
      const Duration latency = router.path(flows[f].from, flows[f].to).latency;
      engine_.at(TimePoint::at(flows[f].start + latency), engine::Phase::kDispatch, *this, kBegin, f);
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

  // The links of the flow's connection, and what it puts on them for those that follow the load.
  std::vector<flow::Use> uses_of(std::uint32_t f, LinkPaths::Placed& placed) {
    const collective::Edge edge{flows_[f].from, flows_[f].to, 1.0};
    const auto message = paths_.rules().message.count();
    const auto messages = static_cast<std::uint64_t>((flows_[f].bytes.count() + message - 1) / message);
    std::vector<flow::Use> uses;
    for (const BundleUse& use : builder_.build({&edge, 1}, TrafficOwner{f}, messages)) {
      uses.push_back({flow::LinkIndex{use.bundle}, use.coefficient});
    }
    placed = paths_.take_placed();
    return uses;
  }

  void begin(std::uint32_t f) {
    UnderWay& flow = under_way_[f].emplace();
    flow.route = network_.add_route(uses_of(f, flow.placed));
    network_.start(flow.route, flows_[f].bytes.si(), std::nullopt, f);
  }

  void change(std::uint32_t index) {
    std::vector<std::uint32_t> slots;
    paths_.apply(paths_.rules().changes[index], slots);
    for (const std::uint32_t slot : slots) network_.set_capacity(flow::LinkIndex{slot}, paths_.capacity(slot));
    for (std::uint32_t f = 0; f < under_way_.size(); ++f) {
      if (!under_way_[f]) continue;
      paths_.release(under_way_[f]->placed);
      network_.move_route(under_way_[f]->route, uses_of(f, under_way_[f]->placed));
    }
  }

  LinkPaths& paths_;
  std::span<const FlowSpec> flows_;
  UseBuilder builder_;
  engine::Engine engine_;
  network::LinkNetwork network_;
  std::vector<std::optional<UnderWay>> under_way_;
  FlowRunResult result_;
};

}  // namespace

FlowRunResult run_flows(const topology::Router& router, LinkPaths& paths, std::span<const FlowSpec> flows) {
  return FlowRun{router, paths, flows}.run();
}

}  // namespace stepcast::run
