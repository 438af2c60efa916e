#include "sim/run/calls.hpp"

#include <algorithm>

namespace stepcast::run {

CallTable::CallTable(const Machine& machine, const CompiledPlan& compiled, const GroupTable& groups)
    : machine_{machine}, compiled_{compiled}, groups_{groups}, uses_{machine} {}

const CallTable::Rates& CallTable::rates(std::uint32_t communicator) {
  const auto [it, is_new] = rates_.try_emplace(communicator);
  if (is_new) {
    const std::vector<collective::Member> members = groups_.members_on_hosts(communicator);
    const auto alone = [&](collective::Algorithm algorithm) {
      return rate_alone(uses_.build(collective::edges_of(algorithm, members)), machine_.fabric);
    };
    Rates& rates = it->second;
    rates.ring = alone(collective::Algorithm::kRing);
    rates.tree = groups_.communicator(communicator).layout.hosts > 1 ? alone(collective::Algorithm::kTree) : rates.ring;
  }
  return it->second;
}

const Call& CallTable::call(std::uint32_t communicator, std::uint32_t site_index) {
  const auto [it, is_new] = calls_.try_emplace(std::uint64_t{communicator} << 32 | site_index);
  Call& call = it->second;
  if (!is_new) return call;
  const CollectiveSite& site = compiled_.sites[site_index];
  const Rates& alone = rates(communicator);
  call.choice = collective::choose(site.kind, site.bytes, groups_.communicator(communicator).layout, alone.ring,
                                   alone.tree, machine_.forced_algorithm, machine_.collectives);
  double rate = alone.ring;
  if (call.choice.algorithm == collective::Algorithm::kTree) rate = alone.tree;
  if (call.choice.algorithm == collective::Algorithm::kPairwise) {
    rate = rate_alone(uses_.build(collective::edges_of(collective::Algorithm::kPairwise, groups_.members_on_hosts(communicator))),
                      machine_.fabric);
  }
  if (call.choice.rate_cap) rate = std::min(rate, *call.choice.rate_cap);
  call.alone = Duration::from_seconds(call.choice.wire_bytes / rate);
  call.loads_network = call.alone.seconds() >= kNegligible * call.choice.latency.seconds();
  return call;
}

}  // namespace stepcast::run
