// models/parallel/partition.hpp — which layers each part of a model cut for a pipeline holds.
//
// Every part gets layers / parts; the r left over go one each to the r parts in the middle, so the
// first part (which also embeds) and the last (which also computes logits and loss) are the last to
// get one, and with more parts than layers have none. 126 layers over 16 stages: 7, 8, ..., 8, 7, as Llama 3 405B was trained (Grattafiori et al.
// 2024, section 3.3.2). When the middle is off by half a stage, the earlier stages take the extra.
#pragma once

#include <cstdint>
#include <vector>

namespace stepcast::parallel {

struct LayerRange {
  std::int64_t first = 0;
  std::int64_t count = 0;
  friend auto operator<=>(const LayerRange&, const LayerRange&) = default;
};

// Requires: 1 <= stages <= layers + 2.
std::vector<LayerRange> split_layers(std::int64_t layers, std::int32_t stages);

}  // namespace stepcast::parallel
