#include "models/workload/layer_parts.hpp"

namespace stepcast::workload {

namespace {

std::vector<Step> selective_recompute(const LayerContext& c) {
  const RecomputeParts& parts = c.options.recompute_parts;
  StepList steps{c.d, c.options};
  if (parts.norms) {
    steps.norm("norm1", c.shape.norm, c.d.norm_rows, c.d.hidden, false);
    steps.norm("norm2", c.shape.norm, c.d.norm_rows, c.d.hidden, false);
  }
  if (parts.latents && c.shape.latent) {
    latents_again(c, steps);
    prepare_heads(c, steps);
  }
  if (parts.attention_core && !c.flash()) attention_core(c, steps);
  if (parts.activations) activations_again(c, steps);
  return steps.take();
}

}  // namespace

Block make_layer(const ModelShape& shape, std::int64_t layer, const BlockOptions& options) {
  LayerContext c{shape, options, local_dims(shape, options), window_of(shape, layer), std::nullopt};
  if (has_experts(shape, layer)) c.experts = expert_dims(shape, options, c.d);
  if (c.window && *c.window >= options.sequence) c.window.reset();

  Block block;
  block.name = "layer";
  block.forward = layer_forward(c);
  block.backward = layer_backward(c);
  if (options.recompute == Recompute::kFull) {
    block.recompute = block.forward;
  } else if (options.recompute == Recompute::kSelective) {
    block.recompute = selective_recompute(c);
  }
  fill_layer_memory(c, block);
  return block;
}

}  // namespace stepcast::workload
