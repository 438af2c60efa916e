#include "sim/run/shard_lists.hpp"

namespace stepcast::run {
namespace {

std::int64_t copies_of_part(const CollectiveSite& site, const Machine& machine) {
  if (site.purpose != plan::Purpose::kData) return 0;
  if (site.kind == plan::CollectiveKind::kReduceScatter) return machine.copies_per_shard;
  return site.kind == plan::CollectiveKind::kAllGather ? machine.copies_per_gathered_shard : 0;
}

}  // namespace

ShardLists list_shards(const CollectiveSite& site, std::size_t ranks, const Machine& machine) {
  constexpr Duration kCall = Duration::nanoseconds(7500);
  const std::int64_t copies = copies_of_part(site, machine);
  if (copies == 0) return {};
  plan::Kernel kernel{.op = plan::OpClass::kElementwise, .read = site.bytes * copies, .written = site.bytes * copies};
  kernel.launches = static_cast<int>(copies * static_cast<std::int64_t>(ranks));
  return {.host = kCall * kernel.launches, .device = machine.gpu.time(kernel)};
}

}  // namespace stepcast::run
