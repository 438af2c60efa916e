#include "models/parallel/compiled_block.hpp"

#include <algorithm>

#include "sim/base/check.hpp"

namespace stepcast::parallel {
namespace {

std::string label_of(const workload::Block& block, const std::string& step) {
  return step.compare(0, block.name.size(), block.name) == 0 ? step : block.name + "." + step;
}

std::vector<CompiledStep> compile_steps(const workload::Block& block, const std::vector<workload::Step>& steps,
                                        std::optional<plan::GroupId> tensor_group, plan::ProgramBuilder& builder) {
  std::vector<CompiledStep> result;
  result.reserve(steps.size());
  for (const workload::Step& step : steps) {
    if (const auto* op = std::get_if<workload::Operator>(&step)) {
      result.push_back({label_of(block, op->name), builder.kernel(op->kernel), 0});
      continue;
    }
    const auto& collective = std::get<workload::TensorCollective>(step);
    SIM_CHECK(tensor_group.has_value(), collective.name);
    result.push_back({label_of(block, collective.name),
                      plan::Collective{collective.kind, *tensor_group, collective.bytes, collective.dtype,
                                       plan::Purpose::kTensor},
                      static_cast<std::size_t>(collective.overlap_steps)});
  }
  for (std::size_t i = 0; i < result.size(); ++i) result[i].index = i;
  return result;
}

bool for_weights(const workload::Step& step) {
  if (const auto* op = std::get_if<workload::Operator>(&step)) return op->kernel.pass == plan::Pass::kWeightGrad;
  return std::get<workload::TensorCollective>(step).for_weights;
}

// Of the steps that a collective may run beside, those that stay in its half of the pass.
void split_backward(const workload::Block& block, CompiledBlock& result) {
  std::vector<bool> weights;
  for (const workload::Step& step : block.backward) weights.push_back(for_weights(step));
  for (const CompiledStep& step : result.backward) {
    CompiledStep half = step;
    const std::size_t end = std::min(step.index + 1 + step.overlap_steps, weights.size());
    half.overlap_steps = static_cast<std::size_t>(
        std::count(weights.begin() + static_cast<std::ptrdiff_t>(step.index) + 1,
                   weights.begin() + static_cast<std::ptrdiff_t>(end), weights[step.index]));
    (weights[step.index] ? result.backward_weight : result.backward_input).push_back(std::move(half));
  }
}

}  // namespace

CompiledBlock compile(const workload::Block& block, std::optional<plan::GroupId> tensor_group,
                      plan::ProgramBuilder& builder) {
  CompiledBlock result;
  result.forward = compile_steps(block, block.forward, tensor_group, builder);
  result.recompute = compile_steps(block, block.recompute, tensor_group, builder);
  result.backward = compile_steps(block, block.backward, tensor_group, builder);
  split_backward(block, result);
  for (const workload::SavedTensor& tensor : block.saved) result.saved += tensor.size;
  result.saved_label = block.name + ".saved";
  result.kept_for_weights = block.weight_inputs + block.weight_gradients;
  result.kept_label = block.name + ".for_weights";
  result.workspace_label = block.name + ".workspace";
  result.recompute_label = block.name + ".recomputed";
  return result;
}

}  // namespace stepcast::parallel
