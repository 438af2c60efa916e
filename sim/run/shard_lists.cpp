#include "sim/run/shard_lists.hpp"

namespace stepcast::run {

ShardLists list_shards(const CollectiveSite& site, std::size_t ranks, const Machine& machine) {
  constexpr Duration kCall = Duration::nanoseconds(6500);
  const bool gradients = site.kind == plan::CollectiveKind::kReduceScatter && site.purpose == plan::Purpose::kData;
  if (!gradients || machine.copies_per_shard == 0) return {};
  const std::int64_t copies = machine.copies_per_shard * static_cast<std::int64_t>(ranks);
  plan::Kernel kernel{.op = plan::OpClass::kElementwise, .read = site.bytes * machine.copies_per_shard, .written = site.bytes * machine.copies_per_shard};
  kernel.launches = static_cast<int>(copies);
  return {.host = kCall * copies, .device = machine.gpu.time(kernel)};
}

}  // namespace stepcast::run
