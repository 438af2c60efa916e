#include "models/workload/layer_parts.hpp"

namespace stepcast::workload {

Block make_layer(const ModelShape& shape, std::int64_t layer, const BlockOptions& options) {
  LayerContext c{shape, options, local_dims(shape, options), window_of(shape, layer)};
  if (c.window && *c.window >= options.sequence) c.window.reset();

  Block block;
  block.name = "layer";
  block.forward = layer_forward(c);
  block.backward = layer_backward(c);
  if (options.recompute == Recompute::kFull) {
    block.recompute = block.forward;
  } else if (options.recompute == Recompute::kSelective && !c.flash()) {
    StepList core{c.d, options};
    attention_core(c, core);
    block.recompute = core.take();
  }
  fill_layer_memory(c, block);
  return block;
}

}  // namespace stepcast::workload
