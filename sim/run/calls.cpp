#include "sim/run/calls.hpp"

#include <algorithm>

namespace stepcast::run {

CallTable::CallTable(const Machine& machine, const CompiledPlan& compiled, const GroupTable& groups, LinkPaths& paths)
    : machine_{machine}, compiled_{compiled}, groups_{groups}, paths_{paths}, uses_{machine.router, paths} {}

double CallTable::alone(std::uint32_t communicator, collective::Algorithm algorithm) {
  const std::vector<collective::Edge> edges = collective::edges_of(algorithm, groups_.members_on_hosts(communicator));
  return rate_alone(uses_.ask(edges, owner_of_collective(communicator, algorithm)), paths_);
}

const CallTable::Rates& CallTable::rates(std::uint32_t communicator) {
  const auto [it, is_new] = rates_.try_emplace(communicator);
  if (is_new) {
    Rates& rates = it->second;
    rates.ring = alone(communicator, collective::Algorithm::kRing);
    rates.tree = groups_.communicator(communicator).layout.hosts > 1 ? alone(communicator, collective::Algorithm::kTree) : rates.ring;
  }
  return it->second;
}

const Call& CallTable::call(std::uint32_t communicator, std::uint32_t site_index) {
  const auto [it, is_new] = calls_.try_emplace(std::uint64_t{communicator} << 32 | site_index);
  Call& call = it->second;
  if (!is_new) return call;
  const CollectiveSite& site = compiled_.sites[site_index];
  const Rates& idle = rates(communicator);
  call.choice = collective::choose(site.kind, site.bytes, groups_.communicator(communicator).layout, idle.ring,
                                   idle.tree, machine_.forced_algorithm, machine_.collectives);
  double rate = idle.ring;
  if (call.choice.algorithm == collective::Algorithm::kTree) rate = idle.tree;
  if (call.choice.algorithm == collective::Algorithm::kPairwise) rate = alone(communicator, collective::Algorithm::kPairwise);
  if (call.choice.rate_cap) rate = std::min(rate, *call.choice.rate_cap);
  call.alone = Duration::from_seconds(call.choice.wire_bytes / rate);
  call.loads_network = call.alone.seconds() >= kNegligible * call.choice.latency.seconds();
  return call;
}

}  // namespace stepcast::run
