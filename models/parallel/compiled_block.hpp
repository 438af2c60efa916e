// models/parallel/compiled_block.hpp — a block's steps with labels and kernel ids of one program, so
// that repeating them for every layer and micro-batch only appends instructions.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "models/parallel/groups.hpp"
#include "models/workload/operators.hpp"
#include "sim/plan/builder.hpp"

namespace stepcast::parallel {

struct CompiledStep {
  std::string label;  // "layer.attention.qkv"
  std::variant<plan::KernelId, plan::Collective> body;
  std::size_t overlap_steps = 0;  // of a collective: steps that may run beside it
  const char* stream = "tp";      // that it runs on then
  std::size_t index = 0;          // in the block's own list
};

struct CompiledBlock {
  std::vector<CompiledStep> forward;
  std::vector<CompiledStep> recompute;
  std::vector<CompiledStep> backward;         // both gradients at once
  std::vector<CompiledStep> backward_input;   // split: what the block before waits for
  std::vector<CompiledStep> backward_weight;  //        the rest
  Bytes saved;
  Bytes kept_for_weights;                     // split: alive from the input's gradient to the weights'
  std::string saved_label;
  std::string kept_label;
  std::string workspace_label;
  std::string recompute_label;
};

// A group may be absent only where the block has no collective over it.
CompiledBlock compile(const workload::Block& block, const Groups& groups, plan::ProgramBuilder& builder);

}  // namespace stepcast::parallel
