#include "models/parallel/compiled_block.hpp"

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
  return result;
}

}  // namespace

CompiledBlock compile(const workload::Block& block, std::optional<plan::GroupId> tensor_group,
                      plan::ProgramBuilder& builder) {
  CompiledBlock result;
  result.forward = compile_steps(block, block.forward, tensor_group, builder);
  result.recompute = compile_steps(block, block.recompute, tensor_group, builder);
  result.backward = compile_steps(block, block.backward, tensor_group, builder);
  for (const workload::SavedTensor& tensor : block.saved) result.saved += tensor.size;
  result.saved_label = block.name + ".saved";
  result.workspace_label = block.name + ".workspace";
  result.recompute_label = block.name + ".recomputed";
  return result;
}

}  // namespace stepcast::parallel
