#include "models/parallel/bucket.hpp"

#include <algorithm>
#include <variant>

#include "sim/base/check.hpp"

namespace stepcast::parallel {
namespace {

using workload::Operator;

bool adds_to_weights(const workload::Step& step) {
  const auto* op = std::get_if<Operator>(&step);
  return op != nullptr && op->kernel.pass == plan::Pass::kWeightGrad;
}

// The step that finishes the gradient begun at `step`: the last of the weight-gradient kernels that
// follow at once (accumulation, bias).
std::size_t finished_at(const std::vector<workload::Step>& steps, std::size_t step) {
  while (step + 1 < steps.size() && adds_to_weights(steps[step + 1]) &&
         !std::get<Operator>(steps[step + 1]).kernel.gemm) {
    ++step;
  }
  return step;
}

bool earlier(const Moment& a, const Moment& b) { return a.block != b.block ? a.block > b.block : a.step < b.step; }

// A product of the head with the embedding's table.
struct TableUse {
  std::size_t chunk = 0;
  Moment moment;
  std::int64_t elements = 0;
};

void add_block(const workload::Block& block, std::size_t chunk, std::size_t index, std::optional<TableUse>& table, std::vector<GradientPiece>& pieces) {
  if (block.parameters == 0) return;
  SIM_CHECK(!block.backward.empty(), block.name);
  std::int64_t left = block.parameters - block.routed_parameters;
  std::int64_t routed_left = block.routed_parameters;
  for (std::size_t step = 0; step < block.backward.size(); ++step) {
    if (!adds_to_weights(block.backward[step])) continue;
    const plan::Kernel& kernel = std::get<Operator>(block.backward[step]).kernel;
    if (!kernel.gemm) continue;
    const std::int64_t elements = kernel.gemm->batch * kernel.gemm->m * kernel.gemm->n;
    const std::int64_t in_fp8 = kernel.dtype == plan::Dtype::kFp8 ? elements : 0;
    if (std::get<Operator>(block.backward[step]).routed) {
      pieces.push_back({chunk, {index, finished_at(block.backward, step)}, elements, Kind::kExpert, in_fp8});
      routed_left -= elements;
      continue;
    }
    if (elements > left) {  // a table that counts with the embedding of this stage
      if (!table) table = TableUse{chunk, {index, step}, elements};
      continue;
    }
    pieces.push_back({chunk, {index, finished_at(block.backward, step)}, elements, Kind::kDense, in_fp8});
    left -= elements;
  }
  SIM_CHECK(routed_left >= 0, block.name, routed_left);
  const Moment last{index, block.backward.size() - 1};
  if (routed_left > 0) pieces.push_back({chunk, last, routed_left, Kind::kExpert});  // biases
  if (left == 0) return;
  pieces.push_back({chunk, last, left, Kind::kDense});
  if (table && table->chunk == chunk && left >= table->elements) {
    pieces.back().shared = table->moment;
    table.reset();
  }
}

}  // namespace

std::vector<GradientPiece> gradient_pieces(const StageModel& model) {
  std::vector<GradientPiece> pieces;
  std::optional<TableUse> table;
  for (std::size_t i = model.blocks.size(); i-- > 0;) {
    add_block(*model.blocks[i].block, model.chunk_of(i), i, table, pieces);
  }
  return pieces;
}

std::vector<Bucket> make_buckets(std::span<const GradientPiece> pieces, std::int64_t bucket_elements) {
  SIM_CHECK(bucket_elements >= 1);
  std::vector<Bucket> buckets;
  for (const Kind kind : {Kind::kDense, Kind::kExpert}) {
    bool open = false;
    for (const GradientPiece& piece : pieces) {
      if (piece.kind != kind) continue;
      if (!open || buckets.back().chunk != piece.chunk) buckets.push_back({piece.chunk, kind, 0, piece.ready, piece.ready, piece.ready});
      buckets.back().elements += piece.elements;
      buckets.back().in_fp8 += piece.in_fp8;
      buckets.back().ready = piece.ready;
      if (piece.shared && earlier(*piece.shared, buckets.back().written)) buckets.back().written = *piece.shared;
      open = buckets.back().elements < bucket_elements;
    }
  }
  // The backward pass goes from the last block to the first.
  std::stable_sort(buckets.begin(), buckets.end(), [](const Bucket& a, const Bucket& b) {
    return earlier(a.ready, b.ready);
  });
  return buckets;
}

}  // namespace stepcast::parallel
