#include "models/parallel/partition.hpp"

#include "sim/base/check.hpp"

namespace stepcast::parallel {

std::vector<LayerRange> split_layers(std::int64_t layers, std::int32_t stages) {
  SIM_CHECK(stages >= 1 && stages <= layers + 2, layers, stages);
  const std::int64_t base = layers / stages;
  const std::int64_t extra = layers % stages;
  const std::int64_t first_extra = (stages - extra) / 2;
  std::vector<LayerRange> ranges;
  std::int64_t next = 0;
  for (std::int64_t stage = 0; stage < stages; ++stage) {
    const bool longer = stage >= first_extra && stage < first_extra + extra;
    ranges.push_back({next, base + (longer ? 1 : 0)});
    next += ranges.back().count;
  }
  return ranges;
}

}  // namespace stepcast::parallel
