#include "sim/run/link_paths.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "sim/base/check.hpp"
#include "sim/base/diagnostic.hpp"
#include "sim/base/hash.hpp"
#include "sim/base/random.hpp"
#include "topologies/path_dag.hpp"

namespace stepcast::run {
namespace {

using network::PathPolicy;

// Loads are whole numbers of 2^-32 of a flow, so that what is released leaves nothing behind.
constexpr double kUnit = 0x1.0p32;
// QP numbers that an owner has on a port; more connections run into the next owner's, as on a real NIC.
constexpr std::uint64_t kQpsOfOwner = 1024;

bool hashes_qp(PathPolicy policy) { return policy != PathPolicy::kEcmp; }

}  // namespace

LinkPaths::LinkPaths(const topology::Fabric& fabric, const PathRules& rules)
    : fabric_{fabric},
      rules_{rules},
      slots_{fabric, rules.by_link()},
      fraction_(slots_.size(), 1.0),
      first_switch_{fabric.first_switch},
      port_draw_{Rng{rules.seed, "source-port"}.next()} {
  if (!rules.by_link()) return;
  hops_.emplace(fabric);
  load_.assign(slots_.size(), 0);
  for (std::size_t s = first_switch_; s < fabric.devices.size(); ++s) {
    const int tier = static_cast<int>(fabric.devices[s].kind) - static_cast<int>(topology::DeviceKind::kLeaf);
    hash_.push_back({.function = rules.hash,
                     .seed = static_cast<std::uint32_t>(Rng{rules.seed, "switch-hash", rules.seed_per_switch ? s : 0}.next()),
                     .offset = tier * rules.tier_offset});
  }
  std::vector<std::uint32_t> below(fabric.leaves.size(), 0);
  for (const topology::Port& port : fabric.ports) position_.push_back(port.attached ? below[port.leaf]++ : 0);
  std::vector<std::uint32_t> in_group(fabric.groups.size(), 0);
  for (const topology::Leaf& leaf : fabric.leaves) leaf_position_.push_back(in_group[leaf.group]++);
  std::vector<std::uint32_t> slots;
  for (const topology::LinkChange& change : rules.changes)
    if (change.at == Duration{}) apply(change, slots);
}

std::uint32_t LinkPaths::first_qp(std::uint32_t port, std::uint64_t owner, std::uint32_t ordinal) const {
  const std::uint64_t first = Rng{rules_.seed, "first-qp", port}.next();
  return static_cast<std::uint32_t>((first + owner * kQpsOfOwner + std::uint64_t{ordinal} * rules_.qps) & network::kQpMask);
}

void LinkPaths::add(const Connection& connection, double weight, std::uint64_t messages, std::vector<BundleUse>& uses) {
  if (network::spreads(rules_.policy)) {
    spread(connection, weight, uses);
    return;
  }
  const bool even = rules_.qp_mode == network::QpMode::kSplit || messages == 0;
  const std::vector<double> shares = network::qp_shares(even ? network::QpMode::kSplit : rules_.qp_mode, rules_.qps, std::max<std::uint64_t>(1, messages));
  for (std::uint32_t q = 0; q < rules_.qps; ++q) {
    if (shares[q] == 0.0) continue;
    if (rules_.policy == PathPolicy::kPlanned) {
      plan(connection, q, weight * shares[q]);
    } else {
      follow(connection, q, weight * shares[q]);
    }
    for (const LinkId link : path_) uses.push_back({slots_.of(link), weight * shares[q], 0.0});
  }
}

void LinkPaths::spread(const Connection& connection, double weight, std::vector<BundleUse>& uses) {
  const topology::PathDag dag = topology::build_dag(*hops_, connection.from_port, connection.to_port);
  if (!dag.reaches()) refuse(connection);
  for (const topology::LinkShare& share : topology::even_shares(dag)) uses.push_back({slots_.of(share.link), weight * share.share, 0.0});
}

// Walks hop by hop; path_ holds the links.
void LinkPaths::follow(const Connection& connection, std::uint32_t qp, double weight) {
  const std::uint32_t local = (connection.local_qp + qp) & network::kQpMask;
  const std::uint32_t remote = (connection.remote_qp + qp) & network::kQpMask;
  constexpr std::uint32_t kNetwork = 10U << 24;
  const network::FlowHeader header{
      .source = kNetwork | (connection.from_port & 0xFFFFFF),
      .destination = kNetwork | (connection.to_port & 0xFFFFFF),
      .source_port = network::source_port(rules_.source_port, local, remote,
                                          mix64(port_draw_ ^ (std::uint64_t{connection.from_port} << 32 | local))),
      .destination_qp = remote};
  const network::HashKey key{header, hashes_qp(rules_.policy) ? network::HashFields::kFiveTupleAndQp : network::HashFields::kFiveTuple};
  path_.clear();
  topology::NextHops::Place place = hops_->source(connection.from_port);
  while (path_.empty() || !hops_->arrived(place, connection.to_port)) {
    hops_->find(place, connection.to_port, candidates_);
    if (candidates_.empty()) refuse(connection);
    const topology::NextHops::Step step = candidates_[candidates_.size() == 1 ? 0 : choose(place, connection, key)];
    path_.push_back(step.link);
    place = step.to;
  }
  if (network::follows_load(rules_.policy))
    for (const LinkId link : path_) put(slots_.of(link), weight);
}

std::size_t LinkPaths::choose(const topology::NextHops::Place& place, const Connection& connection, const network::HashKey& key) {
  const network::SwitchHash nic{.function = rules_.hash};
  const network::SwitchHash& how = place.device.index() < first_switch_ ? nic : hash_[place.device.index() - first_switch_];
  if (rules_.policy == PathPolicy::kPinned) {
    const bool at_spine = fabric_.devices[place.device.index()].kind == topology::DeviceKind::kSpine;
    const std::uint32_t position = at_spine ? leaf_position_[fabric_.ports[connection.to_port].leaf] : position_[connection.to_port];
    return network::pinned_choice(position, candidates_.size());
  }
  if (!network::follows_load(rules_.policy)) return network::hashed_choice(how, key, candidates_.size());
  loads_.clear();
  for (const auto& [link, to] : candidates_) loads_.push_back(relative_load(slots_.of(link)));
  return network::least_loaded(loads_, network::hash(how.function, key, how.seed));
}

void LinkPaths::plan(const Connection& connection, std::uint32_t qp, double weight) {
  const PlanKey key{connection.from_port, connection.to_port, (connection.local_qp + qp) & network::kQpMask};
  if (const auto known = plans_.find(key); known != plans_.end()) {
    path_ = known->second;
    const bool works = std::all_of(path_.begin(), path_.end(), [&](LinkId link) { return hops_->usable(link); });
    if (!works) follow(connection, qp, weight);  // until the planner's next round
    return;
  }
  const topology::PathDag dag = topology::build_dag(*hops_, connection.from_port, connection.to_port);
  if (!dag.reaches()) refuse(connection);
  path_ = topology::widest_path(dag, [&](LinkId link) {
    const std::uint32_t slot = slots_.of(link);
    return (static_cast<double>(load_[slot]) / kUnit + weight) / capacity(slot);
  });
  for (const LinkId link : path_) put(slots_.of(link), weight);
  plans_.emplace(key, path_);
  new_plans_.push_back(key);
}

void LinkPaths::put(std::uint32_t slot, double weight) {
  const std::int64_t units = std::llround(weight * kUnit);
  load_[slot] += units;
  placed_.emplace_back(slot, units);
}

// Compared with links of other capacity: the load over the share of a full link that this one is.
std::int64_t LinkPaths::relative_load(std::uint32_t slot) const {
  return std::llround(static_cast<double>(load_[slot]) / fraction_[slot]);
}

LinkPaths::Placed LinkPaths::take_placed() {
  new_plans_.clear();
  return std::exchange(placed_, {});
}

void LinkPaths::forget_placed() {
  for (const PlanKey& key : new_plans_) plans_.erase(key);
  release(take_placed());
}

void LinkPaths::hold(const Placed& placed) {
  for (const auto& [slot, units] : placed) load_[slot] += units;
}

void LinkPaths::release(const Placed& placed) {
  for (const auto& [slot, units] : placed) load_[slot] -= units;
}

void LinkPaths::apply(const topology::LinkChange& change, std::vector<std::uint32_t>& slots) {
  for (const LinkId link : change.links) {
    const std::uint32_t slot = slots_.of(link);
    fraction_[slot] = change.fraction;
    hops_->set_usable(link, change.fraction > 0.0);
    slots.push_back(slot);
  }
}

void LinkPaths::refuse(const Connection& connection) const {
  const auto nic = [&](std::uint32_t port) { return fabric_.devices[hops_->source(port).device.index()].name; };
  throw UserError{Diagnostic{.where = {},
                             .path = "cluster.fabric.failures",
                             .problem = fmt::format("no path is left from {} to {}", nic(connection.from_port), nic(connection.to_port)),
                             .expected = "failures that leave every pair that communicates a path",
                             .got = fmt::format("{} listed", rules_.changes.size()),
                             .hint = {}}};
}

}  // namespace stepcast::run
