#include "executor/common/volumes.hpp"

#include <algorithm>
#include <numeric>

namespace stepcast::executor {

std::size_t pair_bytes(const plan::Collective& c, const plan::Plan& plan, std::size_t slots, std::size_t from, std::size_t to) {
  const double bytes = c.bytes.si();
  if (!c.volumes) return static_cast<std::size_t>(bytes / static_cast<double>(slots));
  const plan::VolumeTable& table = plan.volumes[c.volumes->index()];
  const double sum = std::accumulate(table.values.begin(), table.values.end(), 0.0);
  switch (table.form) {
    case plan::VolumeForm::kReceivers: return static_cast<std::size_t>(bytes * table.values[to] / sum);
    case plan::VolumeForm::kSenders: return static_cast<std::size_t>(bytes * table.values[from] / sum);
    case plan::VolumeForm::kPairs: return static_cast<std::size_t>(bytes * static_cast<double>(slots) * table.values[from * slots + to] / sum);
  }
  return 0;
}

Part place_in(std::size_t room, std::size_t at, std::size_t size) {
  size = std::min(size, room);
  const std::size_t begin = at + size <= room ? at : 0;
  return {begin, begin + size};
}

}  // namespace stepcast::executor
