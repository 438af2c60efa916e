#include "sim/run/calls.hpp"

#include <algorithm>

#include "models/collective/device_use.hpp"
#include "sim/run/shard_lists.hpp"
#include "sim/run/transport_use.hpp"

namespace stepcast::run {

CallTable::CallTable(const Machine& machine, const CompiledPlan& compiled, const GroupTable& groups, LinkPaths& paths)
    : machine_{machine}, compiled_{compiled}, groups_{groups}, paths_{paths}, uses_{machine.router, paths} {}

const collective::IdleRate& CallTable::idle(std::uint32_t communicator, const Way& way) {
  collective::IdleRate& rate = rates_[{communicator, way.volumes}][static_cast<std::size_t>(way.algorithm)];
  if (rate.whole <= 0.0) {
    const std::vector<collective::Edge> edges = groups_.edges(communicator, way);
    rate = idle_rate(edges, machine_.fabric, way.algorithm, owner_of_collective(groups_, communicator, way.algorithm), uses_, paths_);
    const Communicator& group = groups_.communicator(communicator);
    if (!machine_.transports.of(group.network).sockets) return rate;
    const ThreadUse threads =
        thread_use(on_network(edges, machine_, group), way.algorithm, machine_.fabric, machine_.transports, group.network);
    if (threads.coefficient > 0.0) {
      rate.whole = std::min(rate.whole, threads.rate / threads.coefficient);
      rate.network = std::min(rate.network, threads.rate / threads.coefficient);
    }
  }
  return rate;
}

const Call& CallTable::call(std::uint32_t communicator, std::uint32_t site_index) {
  const auto [it, is_new] = calls_.try_emplace(std::uint64_t{communicator} << 32 | site_index);
  Call& call = it->second;
  if (!is_new) return call;
  const CollectiveSite& site = compiled_.sites[site_index];
  const collective::Layout& layout = groups_.communicator(communicator).layout;
  const collective::Parameters parameters = machine_.collectives_on(groups_.communicator(communicator).network);
  for (const collective::Algorithm algorithm :
       collective::candidates(site.kind, layout, parameters, machine_.forced)) {
    idle(communicator, {algorithm, site.volumes});
  }
  const collective::IdleRates& rates = rates_[{communicator, site.volumes}];
  call.choice = collective::choose(site.kind, site.bytes, layout, rates, machine_.forced, parameters);
  call.choice.latency += list_shards(site, layout.ranks, machine_).device;
  call.way = {call.choice.algorithm, site.volumes};
  double rate = rates[static_cast<std::size_t>(call.choice.algorithm)].whole;
  if (call.choice.rate_cap) rate = std::min(rate, *call.choice.rate_cap);
  call.alone = Duration::from_seconds(call.choice.wire_bytes / rate);
  call.loads_network = call.alone.seconds() >= kNegligible * call.choice.latency.seconds();
  if (call.loads_network && call.alone > Duration{}) {
    const collective::DeviceUse use = collective::device_use(site.kind, site.bytes, call.choice, layout.ranks, call.alone, parameters);
    call.taken = {use.sms, use.memory};
  }
  return call;
}

}  // namespace stepcast::run
