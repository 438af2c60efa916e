// tests/support/small_traffic.hpp — hand-made networks for transports: 50,000 B/us and 1 us on every wire.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "models/network/transport/traffic.hpp"
#include "sim/base/units.hpp"

namespace stepcast::test {

class SmallTraffic {
 public:
  // A message of `bytes` over these devices, hosts at both ends; acknowledgements return the same way.
  std::uint32_t send(double bytes, const std::vector<std::uint32_t>& devices) {
    const std::vector<std::uint32_t> back(devices.rbegin(), devices.rend());
    traffic_.messages.push_back({.bytes = bytes, .routes = {route(devices)}, .back_routes = {route(back)}});
    return static_cast<std::uint32_t>(traffic_.messages.size() - 1);
  }
  // The same over several ways.
  std::uint32_t spread(double bytes, const std::vector<std::vector<std::uint32_t>>& ways) {
    network::Message message{.bytes = bytes, .routes = {}};
    for (const std::vector<std::uint32_t>& way : ways) {
      message.routes.push_back(route(way));
      message.back_routes.push_back(route({way.rbegin(), way.rend()}));
    }
    traffic_.messages.push_back(std::move(message));
    return static_cast<std::uint32_t>(traffic_.messages.size() - 1);
  }
  [[nodiscard]] const network::Traffic& traffic() const { return traffic_; }

 private:
  std::uint32_t route(const std::vector<std::uint32_t>& devices) {
    network::Route wires;
    for (std::size_t i = 1; i < devices.size(); ++i) wires.push_back(wire(devices[i - 1], devices[i]));
    traffic_.routes.push_back(std::move(wires));
    return static_cast<std::uint32_t>(traffic_.routes.size() - 1);
  }
  std::uint32_t wire(std::uint32_t from, std::uint32_t to) {
    const auto [at, is_new] = wires_.try_emplace({from, to}, static_cast<std::uint32_t>(traffic_.wires.size()));
    if (is_new) traffic_.wires.push_back({50e9, Duration::microseconds(1), from, to});
    return at->second;
  }

  network::Traffic traffic_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> wires_;
};

inline double completion_us(const network::Completion& completion) { return (completion.end - completion.start).seconds() * 1e6; }

}  // namespace stepcast::test
