#include "models/parallel/stage_model.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "models/parallel/partition.hpp"

namespace stepcast::parallel {

workload::BlockOptions block_options(const Strategy& strategy) {
  workload::BlockOptions options;
  options.micro_batch = strategy.micro_batch;
  options.sequence = strategy.sequence;
  options.tensor_parallel = strategy.tp;
  options.sequence_parallel = strategy.sequence_parallel && strategy.tp > 1;
  options.overlap_tensor_parallel = strategy.overlap_tensor_parallel;
  options.context_parallel = strategy.cp;
  options.context_style = strategy.context_style;
  options.expert_parallel = strategy.ep;
  options.expert_tensor_parallel = expert_tensor(strategy);
  if (strategy.ep_within) options.experts_within = *strategy.ep_within;
  options.routing = strategy.routing;
  options.dispatch_dtype = strategy.dispatch_dtype;
  options.overlap_shared_experts = strategy.overlap_shared_experts;
  options.dtype = strategy.dtype;
  options.gemm_dtype = strategy.gemm_dtype;
  options.attention = strategy.attention;
  options.recompute = strategy.recompute;
  options.recompute_parts = strategy.recompute_parts;
  options.fused_kernels = strategy.fused_kernels;
  options.fused_loss = strategy.fused_loss;
  options.logit_copies = strategy.logit_copies;
  options.fused_accumulation = strategy.fused_accumulation;
  options.grouped_experts = strategy.grouped_experts;
  options.dropout = strategy.dropout;
  options.vocab_padding = strategy.vocab_padding;
  options.gradient_dtype = strategy.gradient_dtype;
  options.adapters = strategy.adapters;
  return options;
}

namespace {

void count_partial_gradients(const workload::ModelShape& shape, const workload::BlockOptions& options,
                             ModelBlocks& blocks) {
  if (options.tensor_parallel == 1) return;
  if (options.adapters) {
    blocks.partial_per_layer = whole_adapter_elements(shape, options);
    return;
  }
  if (!shape.qk_norm_whole) blocks.partial_per_layer += qk_norm_parameters(shape, 0, 0);
  if (!options.sequence_parallel) return;
  const std::int64_t norm = norm_parameters(shape, shape.hidden);
  blocks.partial_per_layer += shape.norms_per_layer * norm;
  if (has_output_bias(shape)) blocks.partial_per_layer += shape.hidden;
  if (shape.mlp_bias) blocks.partial_per_layer += shape.hidden;
  if (shape.latent) {
    const workload::LatentAttention& l = *shape.latent;
    const std::int64_t kv = l.kv_rank + l.rope_dim;
    blocks.partial_per_layer += shape.hidden * (l.q_rank + kv) + norm_parameters(shape, l.q_rank) + norm_parameters(shape, l.kv_rank);
    if (shape.attention_bias) blocks.partial_per_layer += l.q_rank + kv;
  }
  if (shape.experts) {
    const workload::ExpertShape& e = *shape.experts;
    blocks.partial_per_expert_layer = e.count * shape.hidden + (e.router_bias ? e.count : 0) + (e.shared_gate ? shape.hidden : 0);
  }
  if (shape.predicted_ahead > 0) blocks.partial_in_predictor = 3 * norm + 2 * shape.hidden * shape.hidden;
  blocks.partial_in_head = norm;
  if (shape.embedding_norm) blocks.partial_in_embedding += norm;
}

}  // namespace

namespace {

// Adds the layers that differ; which of them each layer is.
std::vector<std::size_t> distinct_layers(const workload::ModelShape& shape, const workload::BlockOptions& options,
                                         std::vector<workload::Block>& layers) {
  std::map<std::pair<std::optional<std::int64_t>, bool>, std::size_t> by_kind;
  std::vector<std::size_t> result;
  for (std::int64_t layer = 0; layer < shape.layers; ++layer) {
    const auto [entry, is_new] = by_kind.try_emplace({window_of(shape, layer), has_experts(shape, layer)}, layers.size());
    if (is_new) layers.push_back(make_layer(shape, layer, options));
    result.push_back(entry->second);
  }
  return result;
}

bool some_layers_keep(const Strategy& s) {
  return s.recompute == workload::Recompute::kFull && s.recompute_span != RecomputeSpan::kUniform;
}

}  // namespace

ModelBlocks make_blocks(const workload::ModelShape& shape, const Strategy& strategy) {
  const workload::BlockOptions options = block_options(strategy);
  const bool one_table = placement_of(strategy).joins_ends();
  ModelBlocks blocks;
  blocks.embedding = make_embedding(shape, options);
  blocks.head = make_head(shape, options, one_table);
  blocks.boundary = boundary_activation(shape, options);
  if (has_images(shape)) {
    blocks.vision = make_vision(*shape.vision, options);
    blocks.vision_layers = shape.vision->layers;
  }

  for (std::int64_t i = 0; i < shape.predicted_ahead; ++i) {
    blocks.predictors.push_back(make_predictor(shape, options));
    if (i > 0 || one_table) continue;
    blocks.predictors.back().parameters += padded_vocab(shape, options) / strategy.tp * shape.hidden;  // a copy of the table
    ++blocks.predictors.back().matrix_count;
  }

  workload::BlockOptions kept = options;
  kept.recompute = workload::Recompute::kNone;
  blocks.block_of_layer = distinct_layers(shape, options, blocks.layers);
  if (some_layers_keep(strategy)) blocks.kept_block_of_layer = distinct_layers(shape, kept, blocks.layers);
  for (std::int64_t layer = 0; layer < shape.layers; ++layer) blocks.layer_has_experts.push_back(has_experts(shape, layer));
  if ((shape.tied_embeddings || shape.predicted_ahead > 0) && !one_table && !strategy.adapters) {
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

// `place`: within its chunk.
bool is_recomputed(const Strategy& s, std::int64_t layer, std::int64_t place) {
  switch (s.recompute_span) {
    case RecomputeSpan::kUniform: return true;
    case RecomputeSpan::kBlock: return place < s.recompute_layers;
    case RecomputeSpan::kEvery: return (layer + 1) % s.recompute_layers == 0;
  }
  return true;
}

void add_layer(const ModelBlocks& blocks, std::size_t layer, bool recomputed, StageModel& model) {
  model.partial_gradients += blocks.partial_per_layer;
  if (blocks.layer_has_experts[layer]) model.partial_gradients += blocks.partial_per_expert_layer;
  const auto& block_of = recomputed || blocks.kept_block_of_layer.empty() ? blocks.block_of_layer : blocks.kept_block_of_layer;
  model.blocks.push_back({&blocks.layers[block_of[layer]], BlockRole::kLayer, static_cast<std::uint16_t>(layer)});
}

// Behind the head; on another stage than the embedding they look tokens up in a copy of its table.
void add_predictors(const ModelBlocks& blocks, StageModel& model) {
  const std::size_t layers = blocks.block_of_layer.size();
  for (std::size_t i = 0; i < blocks.predictors.size(); ++i) {
    model.blocks.push_back({&blocks.predictors[i], BlockRole::kLayer, static_cast<std::uint16_t>(layers + i)});
    model.partial_gradients += blocks.partial_per_layer + blocks.partial_in_predictor;
    if (blocks.layer_has_experts.back()) model.partial_gradients += blocks.partial_per_expert_layer;
  }
}

void add_vision(const ModelBlocks& blocks, StageModel& model) {
  if (!blocks.vision) return;
  model.blocks.push_back({&blocks.vision->patches, BlockRole::kLayer, {}});
  for (std::int64_t i = 0; i < blocks.vision_layers; ++i) model.blocks.push_back({&blocks.vision->layer, BlockRole::kLayer, {}});
  model.blocks.push_back({&blocks.vision->projector, BlockRole::kLayer, {}});
  model.partial_gradients += blocks.vision->partial_gradients;
}

// Groups of layers that lie one after the other; all other blocks are alone.
void group_layers(const Strategy& s, std::size_t first_layer, std::size_t layers, std::size_t first, StageModel& model) {
  for (std::size_t i = first; i < model.blocks.size(); ++i) model.blocks[i].group_first = model.blocks[i].group_last = i;
  if (s.recompute != workload::Recompute::kFull || s.recompute_span != RecomputeSpan::kUniform) return;
  const auto size = static_cast<std::size_t>(s.recompute_layers);
  for (std::size_t i = 0; i < layers; ++i) {
    model.blocks[first_layer + i].group_first = first_layer + i / size * size;
    model.blocks[first_layer + i].group_last = first_layer + std::min(layers, (i / size + 1) * size) - 1;
  }
}

void add_chunk(const ModelBlocks& blocks, const Strategy& strategy, const LayerRange& range, ChunkPlace place, StageModel& model) {
  const std::size_t first = model.blocks.size();
  const bool embeds = model.placement.first(place);
  const bool heads = model.placement.last(place);
  if (embeds) add_vision(blocks, model);
  if (embeds) {
    model.blocks.push_back({&blocks.embedding, BlockRole::kEmbedding, {}});
    model.partial_gradients += blocks.partial_in_embedding;
  }
  const std::size_t first_layer = model.blocks.size();
  for (std::int64_t layer = range.first; layer < range.first + range.count; ++layer) {
    add_layer(blocks, static_cast<std::size_t>(layer), is_recomputed(strategy, layer, layer - range.first), model);
  }
  if (heads) {
    model.blocks.push_back({&blocks.head, BlockRole::kHead, {}});
    model.partial_gradients += blocks.partial_in_head;
    add_predictors(blocks, model);
  }
  if (embeds || heads) model.tied_gradients = blocks.tied_elements;
  group_layers(strategy, first_layer, static_cast<std::size_t>(range.count), first, model);
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
      add_chunk(blocks, strategy, ranges[static_cast<std::size_t>(placement.position(place))], place, model);
    }
    for (const StageBlock& block : model.blocks) {
      model.parameters += block.block->parameters;
      model.tensors += block.block->matrix_count;
      model.routed_parameters += block.block->routed_parameters;
      model.routed_tensors += block.block->routed_count;
      model.frozen += block.block->frozen;
    }
  }
  return result;
}

}  // namespace stepcast::parallel
