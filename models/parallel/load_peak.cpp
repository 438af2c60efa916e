#include "models/parallel/load_peak.hpp"

#include <algorithm>

#include "models/parallel/state.hpp"

namespace stepcast::parallel {
namespace {

constexpr std::int64_t kFp32Bytes = plan::element_bytes(plan::Dtype::kFp32);

// A layer, or what is at the ends of the model together.
std::int64_t largest_unit(const StageModel& model) {
  std::int64_t largest = 0;
  std::int64_t ends = 0;
  for (const StageBlock& block : model.blocks) {
    if (block.role == BlockRole::kLayer)
      largest = std::max(largest, block.block->parameters);
    else
      ends += block.block->parameters;
  }
  return std::max(largest, ends);
}

std::vector<LoadPeak> peaks_of(const StageModel& model, const Strategy& strategy) {
  const PersistentState state = persistent_state(model, strategy);
  const Bytes states = state.parameters + state.gradients + state.optimizer;
  const Bytes whole{model.parameters * kFp32Bytes};
  const Bytes unit{largest_unit(model) * kFp32Bytes};
  const bool all_trained = !strategy.adapters;
  std::vector<LoadPeak> peaks;
  if (strategy.zero == 3) {
    if (all_trained) peaks.push_back({"whole in fp32, then sharded", std::max(whole + state.parameters, states)});
    peaks.push_back({"meta device, a unit at a time", std::max(state.parameters + unit, states)});
  } else {
    peaks.push_back({"in place", states});
    const Bytes cast{model.parameters * plan::element_bytes(strategy.dtype)};
    if (all_trained) peaks.push_back({"whole in fp32, then cast", std::max(whole + cast, states)});
  }
  peaks.push_back({"checkpoint through the host", states + unit});
  peaks.push_back({"checkpoint on the device", states + states - state.gradients});
  return peaks;
}

}  // namespace

std::vector<LoadPeak> load_peaks(const workload::ModelShape& shape, const Strategy& strategy) {
  const ModelBlocks blocks = make_blocks(shape, strategy);
  std::vector<LoadPeak> worst;
  for (const StageModel& stage : split_stages(blocks, strategy)) {
    const std::vector<LoadPeak> peaks = peaks_of(stage, strategy);
    if (worst.empty()) worst = peaks;
    for (std::size_t i = 0; i < peaks.size(); ++i) worst[i].peak = std::max(worst[i].peak, peaks[i].peak);
  }
  return worst;
}

}  // namespace stepcast::parallel
