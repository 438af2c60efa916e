#include "models/collective/hosts.hpp"

#include <algorithm>
#include <map>

namespace stepcast::collective {

std::vector<Host> by_host(std::span<const Member> members) {
  std::vector<Host> hosts;
  std::map<std::uint32_t, std::size_t> position;
  for (const Member& member : members) {
    const auto [it, is_new] = position.try_emplace(member.node, hosts.size());
    if (is_new) hosts.emplace_back();
    hosts[it->second].push_back(member.gpu);
  }
  return hosts;
}

std::size_t channel_count(const std::vector<Host>& hosts) {
  std::size_t widest = 1;
  for (const Host& host : hosts) widest = std::max(widest, host.size());
  return widest;
}

std::vector<std::size_t> tree_parents(std::size_t count) {
  std::vector<std::size_t> parent(count, count);
  for (std::size_t i = 1; i < count; ++i) {
    const std::size_t bit = i & (~i + 1);
    const std::size_t up = (i ^ bit) | (bit << 1);
    parent[i] = up < count ? up : i ^ bit;
  }
  return parent;
}

std::size_t host_of_label(std::size_t label, std::size_t tree, std::size_t count) {
  if (tree == 0) return label;
  return count % 2 == 0 ? count - 1 - label : (label + 1) % count;
}

}  // namespace stepcast::collective
