#include "models/network/transport/fluid_transport.hpp"

#include <algorithm>

#include "models/network/link_network.hpp"
#include "sim/base/check.hpp"

namespace stepcast::network {
namespace {

class FluidRun final : public FlowListener, public engine::EventTarget {
 public:
  FluidRun(const Traffic& traffic, const PacketFormat& format)
      : traffic_{traffic}, format_{format}, network_{engine_, *this, rates(traffic)}, completions_(traffic.messages.size()),
        followers_(traffic.messages.size()) {
    for (std::size_t m = 0; m < traffic.messages.size(); ++m) {
      const Message& message = traffic.messages[m];
      if (message.after) {
        followers_[*message.after].push_back(m);
      } else {
        engine_.at(message.start, engine::Phase::kDispatch, *this, kStart, m);
      }
    }
  }

  std::vector<Completion> run() {
    SIM_CHECK(engine_.run() == engine::StopReason::kDrained);
    SIM_CHECK(ended_ == completions_.size(), ended_, completions_.size());
    return completions_;
  }

  void on_flow_done(std::uint64_t message) override {
    engine_.after(fixed_time(message), engine::Phase::kCompletion, *this, kEnd, message);
  }

  void on_event(engine::Engine&, std::uint32_t kind, std::uint64_t message) override {
    if (kind == kStart) {
      completions_[message].start = engine_.now();
      network_.start(network_.add_route(uses(message)), traffic_.messages[message].bytes * format_.wire_factor(), {}, message);
      return;
    }
    completions_[message].end = engine_.now();
    ++ended_;
    for (const std::size_t next : followers_[message]) {
      engine_.at(std::max(engine_.now(), traffic_.messages[next].start), engine::Phase::kDispatch, *this, kStart, next);
    }
  }
  [[nodiscard]] std::string_view target_name() const override { return "fluid transport"; }

 private:
  enum Event : std::uint32_t { kStart, kEnd };

  static std::vector<double> rates(const Traffic& traffic) {
    std::vector<double> rates;
    for (const Wire& wire : traffic.wires) rates.push_back(wire.bytes_per_s);
    return rates;
  }

  // A wire that several of the message's routes take carries all their shares.
  [[nodiscard]] std::vector<flow::Use> uses(std::size_t message) const {
    const std::vector<std::uint32_t>& routes = traffic_.messages[message].routes;
    std::vector<std::uint32_t> wires;
    for (const std::uint32_t route : routes) wires.insert(wires.end(), traffic_.routes[route].begin(), traffic_.routes[route].end());
    std::sort(wires.begin(), wires.end());
    std::vector<flow::Use> uses;
    for (auto first = wires.begin(); first != wires.end();) {
      const auto last = std::upper_bound(first, wires.end(), *first);
      uses.push_back({flow::LinkIndex{*first}, static_cast<double>(last - first) / static_cast<double>(routes.size())});
      first = last;
    }
    return uses;
  }

  // Equation (2), on the longest of the routes.
  [[nodiscard]] Duration fixed_time(std::size_t message) const {
    Duration longest;
    for (const std::uint32_t route : traffic_.messages[message].routes) {
      Duration time;
      for (const std::uint32_t wire : traffic_.routes[route]) {
        time += traffic_.wires[wire].latency * 2;
        if (wire != traffic_.routes[route].back()) {
          time += Duration::from_seconds(format_.packet_bytes() / traffic_.wires[wire].bytes_per_s);
        }
      }
      longest = std::max(longest, time);
    }
    return longest;
  }

  const Traffic& traffic_;
  PacketFormat format_;
  engine::Engine engine_;
  LinkNetwork network_;
  std::vector<Completion> completions_;
  std::vector<std::vector<std::size_t>> followers_;
  std::size_t ended_ = 0;
};

}  // namespace

std::vector<Completion> run_fluid(const Traffic& traffic, const PacketFormat& format) { return FluidRun{traffic, format}.run(); }

}  // namespace stepcast::network
