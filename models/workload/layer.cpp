#include "models/workload/layer_parts.hpp"

namespace stepcast::workload {

Block make_layer(const ModelShape& shape, std::int64_t layer, const BlockOptions& options) {
  LayerContext c{shape, options, local_dims(shape, options), window_of(shape, layer), std::nullopt};
  if (has_experts(shape, layer)) c.experts = expert_dims(shape, options, c.d);
  if (c.window && *c.window >= options.sequence) c.window.reset();

  Block block;
  block.name = "layer";
  block.forward = layer_forward(c);
  block.backward = layer_backward(c);
  switch (options.recompute) {
    case Recompute::kNone: break;
    case Recompute::kSelective: block.recompute = selective_recompute(c); break;
    case Recompute::kOperators: block.recompute = operators_again(c); break;
    case Recompute::kFull: block.recompute = block.forward; break;
  }
  fill_layer_memory(c, block);
  return block;
}

}  // namespace stepcast::workload
