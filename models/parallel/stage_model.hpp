// models/parallel/stage_model.hpp — the blocks of a model, built once, and which of them a pipeline
// stage runs, chunk by chunk. Layers of equal shape share one Block.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "models/parallel/placement.hpp"
#include "models/parallel/strategy.hpp"
#include "models/workload/model_shape.hpp"
#include "models/workload/operators.hpp"

namespace stepcast::parallel {

struct ModelBlocks {
  workload::Block embedding;
  workload::Block head;
  std::vector<workload::Block> layers;       // distinct ones: with and without sliding window, experts
  std::vector<workload::Block> predictors;   // of further tokens, one after the other
  std::vector<std::size_t> block_of_layer;   // into `layers`
  std::vector<std::size_t> kept_block_of_layer;  // the same without recomputation, where only some layers have it
  std::optional<workload::VisionBlocks> vision;
  std::int64_t vision_layers = 0;
  Bytes boundary;                            // activation between stages, per tensor-parallel rank
  std::int64_t tied_elements = 0;            // of the table that two stages hold; 0: none
  // Gradients that every tensor-parallel rank holds in part and must sum: norms and row-parallel
  // biases under sequence parallelism (each rank saw its own tokens), head norms always (each rank
  // saw its own heads). Megatron-LM: _allreduce_non_tensor_model_parallel_grads.
  std::int64_t partial_per_layer = 0;
  std::int64_t partial_per_expert_layer = 0;  // besides: router and the gate of shared experts
  std::vector<bool> layer_has_experts;
  std::int64_t partial_in_predictor = 0;
  std::int64_t partial_in_head = 0;
  std::int64_t partial_in_embedding = 0;
};

workload::BlockOptions block_options(const Strategy& strategy);
ModelBlocks make_blocks(const workload::ModelShape& shape, const Strategy& strategy);

enum class BlockRole : std::uint8_t { kEmbedding, kLayer, kHead };

struct StageBlock {
  const workload::Block* block = nullptr;
  BlockRole role = BlockRole::kLayer;
  std::optional<std::uint16_t> layer;  // global index
  // Blocks of the stage that are computed again together, with the input of the first one; alone: itself.
  std::size_t group_first = 0;
  std::size_t group_last = 0;
};

// Blocks first .. first + count - 1 of the stage.
struct StageChunk {
  std::size_t first = 0;
  std::size_t count = 0;
};

// Chunk after chunk, each in forward order. Borrows `blocks`.
struct StageModel {
  std::int32_t stage = 0;
  Placement placement;
  std::vector<StageBlock> blocks;
  std::vector<StageChunk> chunks;
  std::int64_t parameters = 0;  // per worker, trained
  std::int64_t tensors = 0;     // parameter tensors
  std::int64_t routed_parameters = 0;  // of `parameters`: routed experts'
  std::int64_t routed_tensors = 0;
  workload::FrozenWeights frozen;
  std::int64_t partial_gradients = 0;
  std::int64_t tied_gradients = 0;  // summed with the other stage that holds the table
  Bytes boundary;

  [[nodiscard]] std::size_t chunk_of(std::size_t block) const;
  [[nodiscard]] std::int64_t parameters_of(Kind kind) const {
    return kind == Kind::kExpert ? routed_parameters : parameters - routed_parameters;
  }
  [[nodiscard]] std::int64_t tensors_of(Kind kind) const {
    return kind == Kind::kExpert ? routed_tensors : tensors - routed_tensors;
  }
};

std::vector<StageModel> split_stages(const ModelBlocks& blocks, const Strategy& strategy);

}  // namespace stepcast::parallel
