#include "topologies/inventory.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "sim/base/check.hpp"
#include "sim/base/text.hpp"

namespace stepcast::topology {

namespace {

// The path's shares in the order that traffic meets them: each after one that leads to it.
std::vector<Path::Share> in_travel_order(const Fabric& fabric, const PathExample& example) {
  std::set<DeviceId> reached{fabric.gpus[example.from]};
  std::vector<Path::Share> waiting = example.path.shares;
  std::vector<Path::Share> ordered;
  while (!waiting.empty()) {
    const auto met = std::stable_partition(waiting.begin(), waiting.end(), [&](const Path::Share& part) {
      return reached.contains(fabric.links[fabric.bundles[part.bundle].links.front().index()].from);
    });
    SIM_CHECK(met != waiting.begin(), example.from, example.to);  // paths conserve traffic
    for (auto part = waiting.begin(); part != met; ++part)
      for (const LinkId id : fabric.bundles[part->bundle].links) reached.insert(fabric.links[id.index()].to);
    ordered.insert(ordered.end(), waiting.begin(), met);
    waiting.erase(waiting.begin(), met);
  }
  return ordered;
}

}  // namespace

Inventory take_inventory(const Fabric& fabric) {
  constexpr std::size_t kKinds = static_cast<std::size_t>(DeviceKind::kCore) + 1;
  std::array<std::int64_t, kKinds> devices{};
  for (const Device& device : fabric.devices) ++devices[static_cast<std::size_t>(device.kind)];
  Inventory inventory;
  for (std::size_t kind = 0; kind < kKinds; ++kind)
    if (devices[kind] > 0) inventory.devices.push_back({static_cast<DeviceKind>(kind), devices[kind]});

  // Every link has its twin the other way; the one from the lower device kind (or id) is counted.
  using Key = std::tuple<LinkKind, DeviceKind, DeviceKind, double>;
  std::map<Key, std::size_t> row_of;
  const auto row = [&](const Link& link, DeviceKind from, DeviceKind to) -> LinkCount& {
    const auto [found, fresh] = row_of.emplace(Key{link.kind, from, to, link.rate.si()}, inventory.links.size());
    if (fresh) inventory.links.push_back({link.kind, from, to, link.rate, link.efficiency, link.latency, 0});
    return inventory.links[found->second];
  };
  for (const Link& link : fabric.links) {
    const DeviceKind from = fabric.devices[link.from.index()].kind;
    const DeviceKind to = fabric.devices[link.to.index()].kind;
    const bool forward = from < to || (from == to && link.from < link.to);
    LinkCount& entry = forward ? row(link, from, to) : row(link, to, from);
    entry.latency = std::max(entry.latency, link.latency);
    if (forward) ++entry.count;
  }
  return inventory;
}

std::vector<PathExample> example_paths(const Fabric& fabric, const Router& router) {
  std::vector<PathExample> examples;
  const std::uint32_t per_node = fabric.gpus_per_node;
  const auto add = [&](std::string what, std::uint32_t to) {
    if (std::any_of(examples.begin(), examples.end(), [&](const PathExample& e) { return e.what == what; })) return;
    examples.push_back({std::move(what), 0, to, router.path(0, to)});
  };
  if (per_node > 1) add("same node", per_node - 1);
  if (fabric.nodes_per_domain > 1) add("same NVLink domain", per_node);
  if (fabric.ports.empty()) return examples;
  const std::uint32_t nics = fabric.nics_per_node();
  const std::uint32_t own = fabric.host.nics_of_gpu[0].front();
  const std::uint32_t home = fabric.ports[own].leaf;
  for (std::uint32_t node = fabric.nodes_per_domain; node < fabric.nodes; ++node) {
    for (std::uint32_t gpu = 0; gpu < per_node; ++gpu) {
      const std::uint32_t leaf = fabric.ports[std::size_t{node} * nics + fabric.host.nics_of_gpu[gpu].front()].leaf;
      const bool same_group = fabric.leaves[leaf].group == fabric.leaves[home].group;
      const bool cores = fabric.groups[fabric.leaves[home].group].up.has_value();
      add(leaf == home ? "same leaf" : same_group ? "across leaves" : cores ? "across pods" : "across rails", node * per_node + gpu);
    }
  }
  return examples;
}

std::string rate_text(LinkKind kind, Bandwidth rate) {
  return kind == LinkKind::kNetwork ? human_bit_rate(rate) : fmt::format("{:.4g} GB/s", rate.si() / 1e9);
}

std::string inventory_text(const Inventory& inventory) {
  std::string text = "Devices\n";
  for (const DeviceCount& row : inventory.devices) text += fmt::format("  {:>10}  {}\n", row.count, device_kind_name(row.kind));
  text += "Links (each way)\n";
  for (const LinkCount& row : inventory.links) {
    text += fmt::format("  {:>10}  {:<8} {:<28} {:>12}  {:>4.0f} % usable  {}\n", row.count, link_kind_name(row.kind),
                        fmt::format("{} - {}", device_kind_name(row.from), device_kind_name(row.to)), rate_text(row.kind, row.rate),
                        100.0 * row.efficiency, human_duration(row.latency));
  }
  return text;
}

std::string path_text(const Fabric& fabric, const PathExample& example) {
  const auto gpu_name = [&](std::uint32_t gpu) { return fabric.devices[fabric.gpus[gpu].index()].name; };
  std::string text = fmt::format("{}: {} to {}, {} one way, {} switch{}\n", example.what, gpu_name(example.from), gpu_name(example.to),
                                 human_duration(example.path.latency), example.path.switch_hops, example.path.switch_hops == 1 ? "" : "es");
  for (const Path::Share& part : in_travel_order(fabric, example)) {
    const Bundle& bundle = fabric.bundles[part.bundle];
    const Link& link = fabric.links[bundle.links.front().index()];
    text += fmt::format("  {:<42} {:>4.0f} % of the traffic, {:>5} link{} of {} usable\n", bundle_name(fabric, part.bundle), 100.0 * part.share,
                        bundle.links.size(), bundle.links.size() == 1 ? " " : "s", rate_text(link.kind, link.capacity()));
  }
  return text;
}

}  // namespace stepcast::topology
