#include "topologies/side_networks.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "sim/base/name_ranges.hpp"
#include "sim/base/text.hpp"
#include "topologies/refusal.hpp"

namespace stepcast::topology {

std::vector<std::uint32_t> read_node_list(const std::string& path, const std::string& text, std::uint32_t nodes) {
  const std::string expected = fmt::format("nodes from 0 to {}, such as 0-3,6", nodes - 1);
  const NameList list = expand_names("[" + text + "]");
  if (list.error) refuse(path, "not a list of nodes", expected, text);
  std::vector<std::uint32_t> read;
  for (const std::string& name : list.names) {
    const std::optional<double> number = parse_number(name);
    if (!number || *number < 0 || *number >= nodes || *number != static_cast<double>(static_cast<std::uint32_t>(*number)))
      refuse(path, fmt::format("no node {}", name), expected, text);
    read.push_back(static_cast<std::uint32_t>(*number));
  }
  std::sort(read.begin(), read.end());
  if (const auto twice = std::adjacent_find(read.begin(), read.end()); twice != read.end())
    refuse(path, fmt::format("node {} twice", *twice), "each node once", text);
  return read;
}

namespace {

std::vector<std::uint32_t> read_nodes(const std::string& path, const std::string& text, std::uint32_t nodes) {
  std::vector<std::uint32_t> read = read_node_list(path, text, nodes);
  if (read.size() < 2) refuse(path, "fewer than two nodes", fmt::format("nodes from 0 to {}, such as 0-3,6", nodes - 1), text);
  return read;
}

void check_name(const std::string& path, const std::string& name, std::span<const NetworkPart> before) {
  if (name.find_first_of("/ <>") != std::string::npos || name.starts_with("node"))
    refuse(path, "a name that would be taken for something else", "a word without '/', '<', '>' and blanks that does not begin with 'node'", name);
  for (const NetworkPart& other : before)
    if (other.name == name) refuse(path, fmt::format("a second '{}'", name), "a name of its own for each network");
}

void check_keys(const std::string& path, const scenario::SideNetwork& network) {
  if (network.carries.empty() && !network.nodes)
    refuse(path, "says neither what it carries nor which nodes it joins", "carries: [pp], or nodes: 0-7", {}, "what no other network takes goes over cluster.fabric");
  if (network.fabric.routing != scenario::Routing{}) refuse(path + ".fabric.routing", "stands in cluster.fabric for all networks", "cluster.fabric.routing");
  if (!network.fabric.failures.empty()) refuse(path + ".fabric.failures", "stand in cluster.fabric for all networks", "cluster.fabric.failures");
}

// No traffic is given to two networks.
void check_shared(const std::string& path, const NetworkPart& part, std::span<const NetworkPart> before) {
  for (const NetworkPart& other : before.subspan(1)) {
    std::vector<std::uint32_t> common;
    std::set_intersection(part.nodes.begin(), part.nodes.end(), other.nodes.begin(), other.nodes.end(), std::back_inserter(common));
    if (common.size() < 2) continue;
    if (part.carries.empty() && other.carries.empty())
      refuse(path + ".nodes", fmt::format("nodes {} and {} are on '{}' as well", common[0], common[1], other.name), "nodes of no other network, or carries");
    for (const auto& [word, axis] : enum_words(scenario::TrafficAxis{})) {
      const auto carries = [axis = axis](const NetworkPart& p) { return std::find(p.carries.begin(), p.carries.end(), axis) != p.carries.end(); };
      if (carries(part) && carries(other))
        refuse(path + ".carries", fmt::format("{} between nodes {} and {} goes over '{}' as well", word, common[0], common[1], other.name), "each axis on one network");
    }
  }
}

}  // namespace

std::vector<NetworkPart> name_networks(std::span<const scenario::SideNetwork> networks, std::uint32_t nodes) {
  std::vector<NetworkPart> parts(1);
  parts[0].nodes.resize(nodes);
  std::iota(parts[0].nodes.begin(), parts[0].nodes.end(), 0U);
  for (std::size_t i = 0; i < networks.size(); ++i) {
    const std::string path = fmt::format("cluster.networks[{}]", i);
    check_name(path + ".name", networks[i].name, parts);
    check_keys(path, networks[i]);
    NetworkPart part;
    part.name = networks[i].name;
    part.nodes = networks[i].nodes ? read_nodes(path + ".nodes", *networks[i].nodes, nodes) : parts[0].nodes;
    part.carries = networks[i].carries;
    check_shared(path, part, parts);
    parts.push_back(std::move(part));
  }
  return parts;
}

std::vector<std::uint32_t> preferred_networks(const Fabric& fabric, std::optional<scenario::TrafficAxis> axis) {
  std::vector<std::uint32_t> order;
  const auto count = static_cast<std::uint32_t>(fabric.networks.size());
  for (std::uint32_t n = 1; n < count; ++n) {
    const auto& carries = fabric.networks[n].carries;
    if (axis && std::find(carries.begin(), carries.end(), *axis) != carries.end()) order.push_back(n);
  }
  for (std::uint32_t n = 1; n < count; ++n)
    if (fabric.networks[n].carries.empty()) order.push_back(n);
  order.push_back(0);
  return order;
}

}  // namespace stepcast::topology
