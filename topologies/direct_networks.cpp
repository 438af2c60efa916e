#include "topologies/direct_networks.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "sim/base/check.hpp"

namespace stepcast::topology {
namespace {

// Every NIC of node n on switch n / nodes_per_switch.
void attach_in_order(GraphNetwork& network, std::uint32_t nodes, std::uint32_t nics, std::uint32_t nodes_per_switch) {
  for (std::uint32_t n = 0; n < nodes; ++n)
    for (std::uint32_t j = 0; j < nics; ++j) network.attachments.push_back({.to = n / nodes_per_switch, .links = {}});
}

}  // namespace

GraphNetwork make_grid(std::span<const std::uint32_t> shape, const GridPlan& plan, std::uint32_t nodes, std::uint32_t nics) {
  std::uint32_t points = 1;
  for (const std::uint32_t size : shape) points *= size;
  SIM_CHECK(points * plan.nodes_per_switch == nodes, points, nodes);
  GraphNetwork network;
  const GraphLinks links{.count = plan.neighbour_links, .rate = {}, .latency = {}};
  for (std::uint32_t p = 0; p < points; ++p) {
    std::string name;
    std::uint32_t stride = points;
    std::uint32_t rest = p;
    for (const std::uint32_t size : shape) {
      stride /= size;
      const std::uint32_t at = rest / stride;
      rest %= stride;
      name += fmt::format("{}{}", name.empty() ? "sw" : ".", at);
      const std::uint32_t first = p - at * stride;
      if (at + 1 < size) network.cables.push_back({p, p + stride, links});
      if (plan.wraps && at + 1 == size && size > 2) network.cables.push_back({p, first, links});
    }
    network.switches.push_back(std::move(name));
  }
  attach_in_order(network, nodes, nics, plan.nodes_per_switch);
  return network;
}

GraphNetwork make_dragonfly(const DragonflyPlan& plan, std::uint32_t nodes, std::uint32_t nics) {
  const std::uint32_t in_group = plan.switches_per_group;
  const std::uint32_t groups = nodes / (plan.nodes_per_switch * in_group);
  SIM_CHECK(groups * plan.nodes_per_switch * in_group == nodes, groups, nodes);
  GraphNetwork network;
  for (std::uint32_t g = 0; g < groups; ++g) {
    for (std::uint32_t s = 0; s < in_group; ++s) {
      network.switches.push_back(fmt::format("group{}.sw{}", g, s));
      for (std::uint32_t t = s + 1; t < in_group; ++t)
        network.cables.push_back({g * in_group + s, g * in_group + t, {.count = plan.neighbour_links, .rate = {}, .latency = {}}});
    }
  }
  // A group's global ports in the order of the other groups, the same number on each of its switches.
  const std::uint32_t ports = groups > 1 ? ((groups - 1) * plan.global_links + in_group - 1) / in_group : 0;
  const auto end = [&](std::uint32_t group, std::uint32_t other, std::uint32_t link) {
    const std::uint32_t place = other < group ? other : other - 1;
    return group * in_group + (place * plan.global_links + link) / ports;
  };
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> global;
  for (std::uint32_t a = 0; a < groups; ++a)
    for (std::uint32_t b = a + 1; b < groups; ++b)
      for (std::uint32_t l = 0; l < plan.global_links; ++l) ++global[{end(a, b, l), end(b, a, l)}];
  for (const auto& [ends, count] : global) network.cables.push_back({ends.first, ends.second, {.count = count, .rate = {}, .latency = {}}});
  attach_in_order(network, nodes, nics, plan.nodes_per_switch);
  return network;
}

GraphNetwork make_direct(std::uint32_t nodes, std::uint32_t nics) {
  SIM_CHECK(nodes > 1 && nics % (nodes - 1) == 0, nodes, nics);
  GraphNetwork network;
  network.is_cables = true;
  network.attachments.resize(std::size_t{nodes} * nics);
  std::vector<std::uint32_t> used(nodes, 0);
  for (std::uint32_t round = 0; round < nics / (nodes - 1); ++round) {
    for (std::uint32_t a = 0; a < nodes; ++a) {
      for (std::uint32_t b = a + 1; b < nodes; ++b) {
        const auto cable = static_cast<std::uint32_t>(network.switches.size());
        network.switches.push_back(fmt::format("cable{}", cable));
        for (const std::uint32_t node : {a, b}) network.attachments[std::size_t{node} * nics + used[node]++].to = cable;
      }
    }
  }
  return network;
}

}  // namespace stepcast::topology
