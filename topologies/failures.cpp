#include "topologies/failures.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "sim/base/text.hpp"
#include "topologies/refusal.hpp"

namespace stepcast::topology {
namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

bool is_switch(DeviceKind kind) {  // or a cable between two cards
  return kind == DeviceKind::kCable || kind == DeviceKind::kLeaf || kind == DeviceKind::kSpine || kind == DeviceKind::kCore;
}

DeviceId find_device(const Fabric& fabric, std::string_view name, const std::string& path, bool switches_only) {
  std::vector<std::string> near;
  for (std::uint32_t d = 0; d < fabric.devices.size(); ++d) {
    const Device& device = fabric.devices[d];
    if (!is_switch(device.kind) && (switches_only || device.kind != DeviceKind::kNic)) continue;
    if (device.name == name) return DeviceId{d};
    if (is_switch(device.kind)) near.push_back(device.name);
  }
  const std::optional<std::string> hint = nearest_word(std::string{name}, near);
  refuse(path, switches_only ? "no such switch" : "no such switch or network card",
         near.empty() ? "a fabric with switches" : fmt::format("one of {} to {}, {} in all", near.front(), near.back(), near.size()),
         std::string{name}, hint ? fmt::format("did you mean '{}'?", *hint) : "");
}

std::vector<LinkId> links_of_switch(const Fabric& fabric, DeviceId device) {
  std::vector<LinkId> links;
  for (std::uint32_t id = 0; id < fabric.links.size(); ++id)
    if (fabric.links[id].from == device || fabric.links[id].to == device) links.push_back(LinkId{id});
  return links;
}

std::vector<LinkId> links_named(const Fabric& fabric, const std::string& name, const std::string& path) {
  const std::string_view text = name;
  bool both = true;
  std::size_t at = text.find("<->");
  std::size_t width = 3;
  if (at == std::string_view::npos) {
    both = false;
    at = text.find("->");
    width = 2;
  }
  if (at == std::string_view::npos) {
    refuse(path, "not a link", "two devices: 'leaf0 <-> spine3' for both directions, 'leaf0 -> spine3' for one", name);
  }
  const DeviceId a = find_device(fabric, trimmed(text.substr(0, at)), path, false);
  const DeviceId b = find_device(fabric, trimmed(text.substr(at + width)), path, false);
  std::vector<LinkId> links;
  for (std::uint32_t id = 0; id < fabric.links.size(); ++id) {
    const Link& link = fabric.links[id];
    if (link.kind != LinkKind::kNetwork) continue;
    if ((link.from == a && link.to == b) || (both && link.from == b && link.to == a)) links.push_back(LinkId{id});
  }
  if (links.empty()) {
    refuse(path, "no link joins these two", "neighbours in the network", name, "`stepcast topology` prints the paths");
  }
  return links;
}

}  // namespace

std::vector<LinkChange> find_failures(const Fabric& fabric, std::span<const scenario::Failure> failures) {
  std::vector<LinkChange> changes;
  for (std::size_t i = 0; i < failures.size(); ++i) {
    const scenario::Failure& failure = failures[i];
    const std::string path = fmt::format("cluster.fabric.failures[{}]", i);
    if (failure.link.has_value() == failure.switch_name.has_value()) {
      refuse(path, failure.link ? "both a link and a switch are named" : "neither a link nor a switch is named",
             "exactly one of link, switch", failure.link ? "both" : "none");
    }
    changes.push_back({.at = failure.at,
                       .fraction = failure.fraction,
                       .links = failure.link ? links_named(fabric, *failure.link, path + ".link")
                                             : links_of_switch(fabric, find_device(fabric, *failure.switch_name, path + ".switch", true))});
  }
  std::stable_sort(changes.begin(), changes.end(), [](const LinkChange& a, const LinkChange& b) { return a.at < b.at; });
  return changes;
}

}  // namespace stepcast::topology
