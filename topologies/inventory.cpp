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

// Devices that the model has and the cluster does not: cards of networks that their node is not on.
std::vector<bool> absent_devices(const Fabric& fabric) {
  std::vector<bool> absent(fabric.devices.size(), false);
  const std::uint32_t nics = fabric.nics_per_node();
  for (std::size_t p = 0; p < fabric.ports.size(); ++p) {
    if (!fabric.ports[p].attached) absent[p / nics * fabric.host.devices + fabric.host.nics[p % nics]] = true;
  }
  return absent;
}

// Every link has its twin the other way; the one from the lower device kind (or id) is counted.
class LinkCounter {
 public:
  explicit LinkCounter(const Fabric& fabric) : fabric_{fabric} {}

  void add(const Link& link) {
    const DeviceKind from = fabric_.devices[link.from.index()].kind;
    const DeviceKind to = fabric_.devices[link.to.index()].kind;
    const bool forward = from < to || (from == to && link.from < link.to);
    LinkCount& entry = forward ? row(link, from, to) : row(link, to, from);
    entry.latency = std::max(entry.latency, link.latency);
    if (forward) ++entry.count;
  }
  std::vector<LinkCount> take() { return std::move(rows_); }

 private:
  using Key = std::tuple<LinkKind, DeviceKind, DeviceKind, double>;

  LinkCount& row(const Link& link, DeviceKind from, DeviceKind to) {
    const auto [found, fresh] = row_of_.emplace(Key{link.kind, from, to, link.rate.si()}, rows_.size());
    if (fresh) rows_.push_back({link.kind, from, to, link.rate, link.efficiency, link.latency, 0});
    return rows_[found->second];
  }

  const Fabric& fabric_;
  std::map<Key, std::size_t> row_of_;
  std::vector<LinkCount> rows_;
};

}  // namespace

Inventory take_inventory(const Fabric& fabric) {
  constexpr std::size_t kKinds = static_cast<std::size_t>(DeviceKind::kCore) + 1;
  const std::vector<bool> absent = absent_devices(fabric);
  std::array<std::int64_t, kKinds> devices{};
  for (std::size_t d = 0; d < fabric.devices.size(); ++d)
    if (!absent[d]) ++devices[static_cast<std::size_t>(fabric.devices[d].kind)];
  Inventory inventory;
  for (std::size_t kind = 0; kind < kKinds; ++kind)
    if (devices[kind] > 0) inventory.devices.push_back({static_cast<DeviceKind>(kind), devices[kind]});
  LinkCounter counter{fabric};
  for (const Link& link : fabric.links)
    if (!absent[link.from.index()] && !absent[link.to.index()]) counter.add(link);
  inventory.links = counter.take();
  return inventory;
}

std::vector<LinkCount> links_of(const Fabric& fabric, const NetworkPart& part) {
  LinkCounter counter{fabric};
  const auto is_own = [&](DeviceId device) { return device.value() >= part.first_switch && device.value() - part.first_switch < part.switches; };
  for (const Link& link : fabric.links)
    if (is_own(link.from) || is_own(link.to)) counter.add(link);
  return counter.take();
}

std::vector<PathExample> example_paths(const Fabric& fabric, const Router& router) {
  std::vector<PathExample> examples;
  const std::uint32_t per_node = fabric.gpus_per_node;
  const auto add = [&](std::string what, std::uint32_t from, std::uint32_t to, Router::Axis axis = std::nullopt) {
    if (std::any_of(examples.begin(), examples.end(), [&](const PathExample& e) { return e.what == what; })) return;
    examples.push_back({std::move(what), from, to, router.path(from, to, axis)});
  };
  if (per_node > 1) add("same node", 0, per_node - 1);
  if (fabric.nodes_per_domain > 1) add("same NVLink domain", 0, per_node);
  if (fabric.ports.empty()) return examples;
  const std::uint32_t nics = fabric.nics_per_node();
  for (std::uint32_t n = 0; n < fabric.networks.size(); ++n) {
    const NetworkPart& part = fabric.networks[n];
    const Router::Axis axis = part.carries.empty() ? Router::Axis{} : part.carries.front();
    const std::uint32_t from = part.nodes.front() * per_node;
    const std::uint32_t home = fabric.ports[std::size_t{part.nodes.front()} * nics + part.nics_of_gpu[0].front()].leaf;
    const bool cores = fabric.groups[fabric.leaves[home].group].up.has_value();
    for (const std::uint32_t node : part.nodes) {
      if (fabric.domain_of(node * per_node) == fabric.domain_of(from) || router.network_between(from, node * per_node, axis) != n) continue;
      for (std::uint32_t gpu = 0; gpu < per_node; ++gpu) {
        const std::uint32_t leaf = fabric.ports[std::size_t{node} * nics + part.nics_of_gpu[gpu].front()].leaf;
        const bool same_group = fabric.leaves[leaf].group == fabric.leaves[home].group;
        const char* what = leaf == home ? "same leaf" : same_group ? "across leaves" : cores ? "across pods" : "across rails";
        add(part.name.empty() ? what : part.name + ": " + what, from, node * per_node + gpu, axis);
      }
    }
  }
  return examples;
}

std::string network_text(const Fabric& fabric, std::size_t network, const std::string& nic) {
  const NetworkPart& part = fabric.networks[network];
  std::string text = part.name;
  std::vector<std::string> axes;
  for (const auto& [word, axis] : enum_words(scenario::TrafficAxis{}))
    if (std::find(part.carries.begin(), part.carries.end(), axis) != part.carries.end()) axes.emplace_back(word);
  if (!axes.empty()) text += " for " + join(axes, ", ");
  if (part.nodes.size() < fabric.nodes) text += fmt::format(" on {} nodes", part.nodes.size());
  return text + fmt::format(": {} x {} a node", part.nics, nic);
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
