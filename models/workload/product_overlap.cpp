// Gathers and scatters of sequence-parallel ranks inside the products that need or make them: the gathered parts are multiplied as they
// arrive, a product's parts are scattered as they are done (Transformer Engine's user buffers, Megatron's --tp-comm-overlap).
// Model    a gather runs beside the product that follows it, a scatter beside the one before it; both are waited for after that product
// Ignores  the part that nothing hides (the first to arrive, the last to leave: one in tp), products that are slower in parts
#include "models/workload/steps.hpp"

#include <algorithm>

namespace stepcast::workload {
namespace {

bool is_product(const Step& step) {
  const auto* op = std::get_if<Operator>(&step);
  return op != nullptr && op->kernel.gemm.has_value();
}

BlockCollective* exposed(Step& step, plan::CollectiveKind kind) {
  auto* c = std::get_if<BlockCollective>(&step);
  return c != nullptr && c->kind == kind && c->over == Over::kTensor && !c->overlaps_next && !c->for_weights ? c : nullptr;
}

void run_beside(BlockCollective& collective, int steps) {
  collective.overlaps_next = true;
  collective.overlap_steps = steps;
}

}  // namespace

void hide_in_products(std::vector<Step>& steps) {
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (BlockCollective* gather = exposed(steps[i], plan::CollectiveKind::kAllGather)) {
      // A cast of the product's input may stand between.
      for (std::size_t ahead = 1; ahead <= 2 && i + ahead < steps.size(); ++ahead) {
        if (!is_product(steps[i + ahead])) continue;
        run_beside(*gather, static_cast<int>(ahead));
        break;
      }
      continue;
    }
    BlockCollective* scatter = exposed(steps[i], plan::CollectiveKind::kReduceScatter);
    if (scatter == nullptr || i == 0 || !is_product(steps[i - 1])) continue;
    run_beside(*scatter, 1);
    std::swap(steps[i - 1], steps[i]);
  }
}

}  // namespace stepcast::workload
