// sim/run/link_paths.hpp — the path of each connection over single links: the policies of
// models/network/path_policy.hpp on the next hops of topologies/next_hops.hpp.
//
// Model    A connection from one port to another has `qps` flows; each walks from switch to switch and
//          takes one of the equal-cost next hops there. Header: addresses 10.0.0.0/8 + port number; QP
//          numbers run on from a random first one of each NIC; switches have a random seed each, or one.
//          Load of a link (adaptive, planned): the sum of the shares placed on it over its capacity.
// Cost     a path: O(hops * ports of a switch); planned and failures under even spreading: O(links on
//          shortest paths)
// Ignores  the load's rates: a share counts the same whatever its collective's rate; the time that
//          routing takes to notice a failure; QPs of other jobs
// Tests    property/path_choice_test, unit/link_paths_test
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/run/path_rules.hpp"
#include "topologies/link_slots.hpp"
#include "topologies/next_hops.hpp"

namespace stepcast::run {

// What a flow puts on a link: `bundle` is a slot of topology::LinkSlots, a bundle unless links are single.
struct BundleUse {
  std::uint32_t bundle = 0;
  double coefficient = 0.0;
  double sources = 0.0;  // that meet on each link of the slot: network links only (models/network/congestion.hpp)
};

// One direction between two ports of Fabric::ports.
struct Connection {
  std::uint32_t from_port = 0;
  std::uint32_t to_port = 0;
  std::uint32_t local_qp = 0;   // of its first flow; the others follow
  std::uint32_t remote_qp = 0;
};

class LinkPaths {
 public:
  // Keeps references. Changes at time 0 are applied.
  LinkPaths(const topology::Fabric& fabric, const PathRules& rules);

  [[nodiscard]] const topology::Fabric& fabric() const { return fabric_; }
  [[nodiscard]] const PathRules& rules() const { return rules_; }
  [[nodiscard]] const topology::LinkSlots& slots() const { return slots_; }
  [[nodiscard]] double capacity(std::uint32_t slot) const { return slots_.capacity(slot) * fraction_[slot]; }

  // A new QP number range on a port for the `ordinal`-th flow that `owner` has there.
  [[nodiscard]] std::uint32_t first_qp(std::uint32_t port, std::uint64_t owner, std::uint32_t ordinal) const;

  // Appends what `weight` units on the connection put on each link. `messages`: of the transfer, for
  // round-robin; 0: many. Throws UserError when no path is left.
  void add(const Connection& connection, double weight, std::uint64_t messages, std::vector<BundleUse>& uses);

  // Shares that add() has placed since the last call of either: to be released when the flow has ended,
  // or forgotten at once, plans included, where add() only asked.
  using Placed = std::vector<std::pair<std::uint32_t, std::int64_t>>;
  Placed take_placed();
  void forget_placed();
  void hold(const Placed& placed);
  void release(const Placed& placed);

  // Applies a change; the slots whose capacity it sets are appended.
  void apply(const topology::LinkChange& change, std::vector<std::uint32_t>& slots);

 private:
  using PlanKey = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;  // ports, local QP

  void spread(const Connection& connection, double weight, std::vector<BundleUse>& uses);
  void follow(const Connection& connection, std::uint32_t qp, double weight);
  void plan(const Connection& connection, std::uint32_t qp, double weight);
  [[nodiscard]] std::size_t choose(const topology::NextHops::Place& place, const Connection& connection, const network::HashKey& key);
  void put(std::uint32_t slot, double weight);
  [[nodiscard]] std::int64_t relative_load(std::uint32_t slot) const;
  [[noreturn]] void refuse(const Connection& connection) const;

  const topology::Fabric& fabric_;
  const PathRules& rules_;
  topology::LinkSlots slots_;
  std::optional<topology::NextHops> hops_;   // none where bundles do
  std::vector<double> fraction_;             // by slot: of the capacity that works
  std::vector<std::int64_t> load_;           // by slot, in units of kUnit
  std::vector<network::SwitchHash> hash_;    // by switch
  std::size_t first_switch_;
  std::vector<std::uint32_t> position_;      // by port: among the ports of its leaf
  std::vector<std::uint32_t> leaf_position_; // by leaf: among the leaves of its group
  std::uint64_t port_draw_;
  Placed placed_;
  std::map<PlanKey, std::vector<LinkId>> plans_;
  std::vector<PlanKey> new_plans_;
  std::vector<topology::NextHops::Step> candidates_;  // scratch
  std::vector<LinkId> path_;
  std::vector<std::int64_t> loads_;
};

}  // namespace stepcast::run
