#include "models/parallel/stage_model.hpp"

#include <map>

#include "models/parallel/partition.hpp"

namespace stepcast::parallel {

workload::BlockOptions block_options(const Strategy& strategy) {
  workload::BlockOptions options;
  options.micro_batch = strategy.micro_batch;
  options.sequence = strategy.sequence;
  options.tensor_parallel = strategy.tp;
  options.sequence_parallel = strategy.sequence_parallel && strategy.tp > 1;
  options.dtype = strategy.dtype;
  options.gemm_dtype = strategy.gemm_dtype;
  options.attention = strategy.attention;
  options.recompute = strategy.recompute;
  options.fused_kernels = strategy.fused_kernels;
  options.fused_loss = strategy.fused_loss;
  options.fused_accumulation = strategy.fused_accumulation;
  options.dropout = strategy.dropout;
  options.vocab_padding = strategy.vocab_padding;
  options.gradient_dtype = strategy.gradient_dtype;
  return options;
}

namespace {

void count_partial_gradients(const workload::ModelShape& shape, const workload::BlockOptions& options,
                             ModelBlocks& blocks) {
  if (options.tensor_parallel == 1) return;
  if (shape.qk_norm) blocks.partial_per_layer += 2 * norm_parameters(shape, shape.head_dim);
  if (!options.sequence_parallel) return;
  const std::int64_t norm = norm_parameters(shape, shape.hidden);
  blocks.partial_per_layer += shape.norms_per_layer * norm;
  if (has_output_bias(shape)) blocks.partial_per_layer += shape.hidden;
  if (shape.mlp_bias) blocks.partial_per_layer += shape.hidden;
  blocks.partial_in_head = norm;
  if (shape.embedding_norm) blocks.partial_in_embedding += norm;
}

}  // namespace

ModelBlocks make_blocks(const workload::ModelShape& shape, const Strategy& strategy) {
  const workload::BlockOptions options = block_options(strategy);
  const bool one_table = placement_of(strategy).joins_ends();
  ModelBlocks blocks;
  blocks.embedding = make_embedding(shape, options);
  blocks.head = make_head(shape, options, one_table);
  blocks.boundary = boundary_activation(shape, options);

  std::map<std::optional<std::int64_t>, std::size_t> by_window;
  for (std::int64_t layer = 0; layer < shape.layers; ++layer) {
    const auto [entry, is_new] = by_window.try_emplace(window_of(shape, layer), blocks.layers.size());
    if (is_new) blocks.layers.push_back(make_layer(shape, layer, options));
    blocks.block_of_layer.push_back(entry->second);
  }
  if (shape.tied_embeddings && !one_table) {
    blocks.tied_elements = padded_vocab(shape, options) / strategy.tp * shape.hidden;
  }
  count_partial_gradients(shape, options, blocks);
  return blocks;
}

namespace {

// Which layers each position of the placement holds.
std::vector<LayerRange> layer_ranges(std::int64_t layers, const Strategy& strategy, const Placement& placement) {
  if (strategy.layers_per_stage.empty()) return split_layers(layers, placement.positions());
  std::vector<LayerRange> ranges;
  std::int64_t next = 0;
  for (const std::int64_t count : strategy.layers_per_stage) {
    ranges.push_back({next, count});
    next += count;
  }
  return ranges;
}

void add_chunk(const ModelBlocks& blocks, const LayerRange& range, ChunkPlace place, StageModel& model) {
  const std::size_t first = model.blocks.size();
  model.partial_gradients += range.count * blocks.partial_per_layer;
  const bool embeds = model.placement.first(place);
  const bool heads = model.placement.last(place);
  if (embeds) {
    model.blocks.push_back({&blocks.embedding, BlockRole::kEmbedding, {}});
    model.partial_gradients += blocks.partial_in_embedding;
  }
  for (std::int64_t layer = range.first; layer < range.first + range.count; ++layer) {
    const std::size_t kind = blocks.block_of_layer[static_cast<std::size_t>(layer)];
    model.blocks.push_back({&blocks.layers[kind], BlockRole::kLayer, static_cast<std::uint16_t>(layer)});
  }
  if (heads) {
    model.blocks.push_back({&blocks.head, BlockRole::kHead, {}});
    model.partial_gradients += blocks.partial_in_head;
  }
  if (embeds || heads) model.tied_gradients = blocks.tied_elements;
  model.chunks.push_back({first, model.blocks.size() - first});
}

}  // namespace

std::size_t StageModel::chunk_of(std::size_t block) const {
  std::size_t chunk = 0;
  while (block >= chunks[chunk].first + chunks[chunk].count) ++chunk;
  return chunk;
}

std::vector<StageModel> split_stages(const ModelBlocks& blocks, const Strategy& strategy) {
  const Placement placement = placement_of(strategy);
  const std::vector<LayerRange> ranges =
      layer_ranges(static_cast<std::int64_t>(blocks.block_of_layer.size()), strategy, placement);
  std::vector<StageModel> result;
  for (std::int32_t stage = 0; stage < placement.stages; ++stage) {
    StageModel& model = result.emplace_back();
    model.stage = stage;
    model.placement = placement;
    model.boundary = blocks.boundary;
    for (std::int32_t chunk = 0; chunk < placement.chunks; ++chunk) {
      const ChunkPlace place{stage, static_cast<std::uint8_t>(chunk)};
      add_chunk(blocks, ranges[static_cast<std::size_t>(placement.position(place))], place, model);
    }
    for (const StageBlock& block : model.blocks) {
      model.parameters += block.block->parameters;
      model.tensors += block.block->matrix_count;
    }
  }
  return result;
}

}  // namespace stepcast::parallel
