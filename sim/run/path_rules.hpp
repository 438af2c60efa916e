// sim/run/path_rules.hpp — how flows get their paths in a run, and what fails when: plain values.
#pragma once

#include <cstdint>
#include <vector>

#include "models/network/hash.hpp"
#include "models/network/path_policy.hpp"
#include "sim/base/units.hpp"
#include "topologies/failures.hpp"

namespace stepcast::run {

struct PathRules {
  network::PathPolicy policy = network::PathPolicy::kIdeal;
  network::HashFunction hash = network::HashFunction::kIdeal;
  bool seed_per_switch = true;
  int tier_offset = 0;                     // bits (hash.hpp)
  network::SourcePort source_port = network::SourcePort::kRandom;
  std::uint32_t qps = 1;                   // of a connection
  network::QpMode qp_mode = network::QpMode::kRoundRobin;
  Bytes message{512 * 1024};
  Duration flowlet_gap;
  std::uint64_t seed = 1;                  // of switch seeds, first QP numbers and random ports
  std::vector<topology::LinkChange> changes;  // by time

  // Bundles do where all links of one carry the same.
  [[nodiscard]] bool by_link() const { return !network::spreads(policy) || !changes.empty(); }
  [[nodiscard]] bool changes_later() const { return !changes.empty() && changes.back().at > Duration{}; }
};

}  // namespace stepcast::run
