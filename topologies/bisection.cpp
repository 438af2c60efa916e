#include "topologies/bisection.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/push_relabel_max_flow.hpp>

#include "sim/base/check.hpp"

namespace stepcast::topology {

namespace {

struct UpDown {
  double up = 0.0;    // wants to leave upwards [B/s]
  double down = 0.0;  // can be taken from above [B/s]
};

// Matches what it can here; returns what passed, and leaves the rest in `ends`, limited by the bundles.
double pass(const Fabric& fabric, UpDown& ends, std::optional<std::uint32_t> up, std::optional<std::uint32_t> down) {
  const double here = std::min(ends.up, ends.down);
  ends.up = up ? std::min(ends.up - here, fabric.bundles[*up].capacity.si()) : 0.0;
  ends.down = down ? std::min(ends.down - here, fabric.bundles[*down].capacity.si()) : 0.0;
  return here;
}

using Traits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
using FlowGraph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, boost::no_property,
    boost::property<boost::edge_capacity_t, std::int64_t,
        boost::property<boost::edge_residual_capacity_t, std::int64_t,
            boost::property<boost::edge_reverse_t, Traits::edge_descriptor>>>>;

void add_edge_pair(FlowGraph& graph, std::size_t from, std::size_t to, std::int64_t capacity) {
  const auto there = boost::add_edge(from, to, graph).first;
  const auto back = boost::add_edge(to, from, graph).first;
  boost::put(boost::edge_capacity, graph, there, capacity);
  boost::put(boost::edge_capacity, graph, back, 0);
  boost::put(boost::edge_reverse, graph, there, back);
  boost::put(boost::edge_reverse, graph, back, there);
}

// Maximum flow over the switches, from what the leaves' first halves send to what their second halves take.
Bandwidth switch_flow(const Fabric& fabric, const std::vector<UpDown>& leaves) {
  const std::size_t first = fabric.first_switch;
  const std::size_t source = fabric.devices.size() - first;
  const std::size_t sink = source + 1;
  FlowGraph graph(sink + 1);
  for (const Bundle& bundle : fabric.bundles) {
    const Link& link = fabric.links[bundle.links.front().index()];
    if (link.from.index() < first || link.to.index() < first) continue;
    add_edge_pair(graph, link.from.index() - first, link.to.index() - first, std::llround(bundle.capacity.si()));
  }
  for (std::size_t l = 0; l < leaves.size(); ++l) {
    const std::size_t at = fabric.leaves[l].device.index() - first;
    if (leaves[l].up > 0.0) add_edge_pair(graph, source, at, std::llround(leaves[l].up));
    if (leaves[l].down > 0.0) add_edge_pair(graph, at, sink, std::llround(leaves[l].down));
  }
  return Bandwidth::from_si(static_cast<double>(boost::push_relabel_max_flow(graph, source, sink)));
}

}  // namespace

std::optional<Bisection> bisection(const Fabric& fabric, const NetworkPart& part) {
  if (fabric.ports.empty()) return std::nullopt;
  Bisection result{.capacity = {}, .nic_capacity = {}, .first_half = static_cast<std::uint32_t>(part.nodes.size() / 2)};
  std::vector<UpDown> leaves(fabric.leaves.size());
  for (std::size_t n = 0; n < part.nodes.size(); ++n) {
    for (std::uint32_t j = 0; j < part.nics; ++j) {
      const Port& port = fabric.ports[std::size_t{part.nodes[n]} * fabric.nics_per_node() + part.first_nic + j];
      if (n < result.first_half) {
        leaves[port.leaf].up += fabric.bundles[port.up].capacity.si();
        result.nic_capacity = result.nic_capacity + fabric.bundles[port.up].capacity;
      } else {
        leaves[port.leaf].down += fabric.bundles[port.down].capacity.si();
      }
    }
  }
  if (part.by_search) {
    result.capacity = switch_flow(fabric, leaves);
    return result;
  }
  double total = 0.0;
  std::vector<UpDown> groups(fabric.groups.size());
  for (std::size_t l = part.first_leaf; l < part.first_leaf + part.leaves; ++l) {
    const Leaf& leaf = fabric.leaves[l];
    total += pass(fabric, leaves[l], leaf.up, leaf.down);
    groups[leaf.group].up += leaves[l].up;
    groups[leaf.group].down += leaves[l].down;
  }
  UpDown core;
  for (std::size_t g = part.first_group; g < part.first_group + part.groups; ++g) {
    total += pass(fabric, groups[g], fabric.groups[g].up, fabric.groups[g].down);
    core.up += groups[g].up;
    core.down += groups[g].down;
  }
  total += std::min(core.up, core.down);
  result.capacity = Bandwidth::from_si(total);
  return result;
}

std::optional<Bisection> bisection(const Fabric& fabric) { return bisection(fabric, fabric.networks.front()); }

Bandwidth bisection_by_max_flow(const Fabric& fabric) {
  SIM_CHECK(!fabric.ports.empty());
  const std::size_t source = fabric.devices.size();
  const std::size_t sink = source + 1;
  FlowGraph graph(sink + 1);
  double most = 0.0;
  for (const Link& link : fabric.links) {
    if (link.kind != LinkKind::kNetwork) continue;
    add_edge_pair(graph, link.from.index(), link.to.index(), std::llround(link.capacity().si()));
    most += link.capacity().si();
  }
  const std::uint32_t first_half = fabric.nodes / 2;
  for (std::uint32_t n = 0; n < fabric.nodes; ++n) {
    for (const std::uint32_t nic : fabric.host.nics) {
      const std::size_t device = n * fabric.host.devices + nic;
      if (n < first_half) {
        add_edge_pair(graph, source, device, std::llround(most));
      } else {
        add_edge_pair(graph, device, sink, std::llround(most));
      }
    }
  }
  return Bandwidth::from_si(static_cast<double>(boost::push_relabel_max_flow(graph, source, sink)));
}

}  // namespace stepcast::topology
