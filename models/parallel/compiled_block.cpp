#include "models/parallel/compiled_block.hpp"

#include <algorithm>

#include "sim/base/check.hpp"

namespace stepcast::parallel {
namespace {

std::string label_of(const workload::Block& block, const std::string& step) {
  return step.compare(0, block.name.size(), block.name) == 0 ? step : block.name + "." + step;
}

struct Place {
  std::optional<plan::GroupId> group;
  plan::Purpose purpose = plan::Purpose::kTensor;
  const char* stream = "tp";
};

Place place_of(workload::Over over, const Groups& groups) {
  switch (over) {
    case workload::Over::kTensor: return {groups.tensor, plan::Purpose::kTensor, "tp"};
    case workload::Over::kContext: return {groups.context, plan::Purpose::kContext, "cp"};
    case workload::Over::kExpert: return {groups.expert, plan::Purpose::kExpert, "ep"};
    case workload::Over::kExpertAcross: return {groups.expert_across, plan::Purpose::kExpert, "ep"};
    case workload::Over::kExpertWithin: return {groups.expert_within, plan::Purpose::kExpert, "ep.within"};
    case workload::Over::kExpertTensor: return {groups.expert_tensor, plan::Purpose::kExpert, "ep"};
  }
  return {};
}

std::optional<plan::VolumesId> volumes_of(workload::Parts parts, const Groups& groups) {
  if (parts == workload::Parts::kToExperts) return groups.to_experts;
  if (parts == workload::Parts::kFromExperts) return groups.from_experts;
  return std::nullopt;
}

std::vector<CompiledStep> compile_steps(const workload::Block& block, const std::vector<workload::Step>& steps,
                                        const Groups& groups, plan::ProgramBuilder& builder) {
  std::vector<CompiledStep> result;
  result.reserve(steps.size());
  for (const workload::Step& step : steps) {
    if (const auto* op = std::get_if<workload::Operator>(&step)) {
      result.push_back({label_of(block, op->name), builder.kernel(op->kernel)});
      continue;
    }
    const auto& collective = std::get<workload::BlockCollective>(step);
    const Place place = place_of(collective.over, groups);
    SIM_CHECK(place.group.has_value(), collective.name);
    result.push_back({label_of(block, collective.name),
                      plan::Collective{collective.kind, *place.group, collective.bytes, collective.dtype, place.purpose,
                                       volumes_of(collective.parts, groups)},
                      static_cast<std::size_t>(collective.overlap_steps), place.stream});
  }
  for (std::size_t i = 0; i < result.size(); ++i) result[i].index = i;
  return result;
}

bool for_weights(const workload::Step& step) {
  if (const auto* op = std::get_if<workload::Operator>(&step)) return op->kernel.pass == plan::Pass::kWeightGrad;
  return std::get<workload::BlockCollective>(step).for_weights;
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

CompiledBlock compile(const workload::Block& block, const Groups& groups, plan::ProgramBuilder& builder) {
  CompiledBlock result;
  result.forward = compile_steps(block, block.forward, groups, builder);
  result.recompute = compile_steps(block, block.recompute, groups, builder);
  result.backward = compile_steps(block, block.backward, groups, builder);
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
