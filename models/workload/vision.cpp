#include "models/workload/vision.hpp"

#include <algorithm>

#include "models/workload/steps.hpp"

namespace stepcast::workload {

using plan::OpClass;
using plan::Pass;

namespace {

double wide(std::int64_t value) { return static_cast<double>(value); }

// One layer as the decoder's layers are built.
ModelShape encoder_shape(const VisionTower& tower) {
  ModelShape shape;
  shape.name = "vision";
  shape.layers = tower.layers;
  shape.hidden = tower.hidden;
  shape.heads = shape.kv_heads = tower.heads;
  shape.head_dim = tower.hidden / tower.heads;
  shape.ffn = tower.ffn;
  shape.vocab = 1;
  shape.attention_bias = shape.mlp_bias = true;
  shape.norm = NormKind::kLayerNorm;
  shape.activation = Activation::kGeluTanh;
  shape.position = tower.rotary ? Position::kRotary : Position::kNone;
  shape.bidirectional = true;
  return shape;
}

BlockOptions encoder_options(const VisionTower& tower, const BlockOptions& options) {
  BlockOptions result = options;
  result.micro_batch = options.micro_batch * tower.images;
  result.sequence = tower.patches();
  result.attention = AttentionKernel::kFlash;
  return result;
}

struct Context {
  const VisionTower& tower;
  ModelShape shape;
  BlockOptions options;
  LocalDims d;
  [[nodiscard]] std::int64_t projector_rows() const {
    const std::int64_t all = d.batch * tower.tokens();
    return d.sequence_parallel ? (all + d.t - 1) / d.t : all;
  }
};

Context context_of(const VisionTower& tower, const BlockOptions& options) {
  Context c{tower, encoder_shape(tower), encoder_options(tower, options), {}};
  c.d = local_dims(c.shape, c.options);
  return c;
}

std::vector<Linear> projector_layers(const Context& c) {
  std::vector<Linear> layers;
  std::int64_t width = c.tower.projector_width();
  for (const std::int64_t next : c.tower.projector) {
    layers.push_back({"linear" + std::to_string(layers.size() + 1), next, width, c.tower.projector_bias, c.projector_rows()});
    width = next;
  }
  return layers;
}

void streamed(StepList& steps, const std::string& name, std::int64_t elements, bool backward) {
  const std::int64_t bytes = elements * steps.dims().bytes;
  steps.add(name, {OpClass::kElementwise, backward ? Pass::kBackward : Pass::kForward, wide(elements), bytes, bytes, 1});
}

Block patches(const Context& c) {
  const LocalDims& d = c.d;
  const std::int64_t values = c.tower.patch_values;
  const std::int64_t weights = values * d.hidden;
  StepList forward{d, c.options};
  forward.gemm("embed", Pass::kForward, d.dtype, {1, d.rows, d.hidden, values}, (d.rows * values + weights) * d.bytes,
               d.rows * d.hidden * d.bytes);
  forward.sum("positions", d.norm_rows * d.hidden, Pass::kForward);
  StepList backward{d, c.options};
  backward.gather("grad");
  backward.gemm("embed.wgrad", Pass::kWeightGrad, d.dtype, {1, d.hidden, values, d.rows},
                d.rows * (values + d.hidden) * d.bytes + weights * d.gradient_bytes, weights * d.gradient_bytes);
  Block block;
  block.name = "vision.patches";
  block.forward = forward.take();
  block.backward = backward.take();
  block.saved = {{"pixels", Bytes{d.rows * values * d.bytes}}};
  block.forward_workspace = block.backward_workspace = Bytes{d.rows * d.hidden * d.bytes};
  block.weight_inputs = Bytes{d.rows * values * d.bytes};
  block.weight_gradients = Bytes{d.norm_rows * d.hidden * d.bytes};
  block.parameters = weights + (c.tower.patch_bias ? d.hidden : 0) + c.tower.positions * d.hidden + c.tower.extra_parameters;
  block.matrix_count = 2 + (c.tower.patch_bias ? 1 : 0);
  return block;
}

void project(const Context& c, StepList& steps) {
  const std::int64_t rows = c.projector_rows();
  if (c.tower.projector_norm) steps.norm("norm", c.shape.norm, rows, c.tower.projector_width(), false);
  const std::vector<Linear> layers = projector_layers(c);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (i > 0) streamed(steps, "activation", rows * layers[i].k, false);
    steps.linear(layers[i]);
  }
  streamed(steps, "insert", rows * layers.back().n, false);
}

void project_backward(const Context& c, StepList& steps) {
  const std::int64_t rows = c.projector_rows();
  const std::vector<Linear> layers = projector_layers(c);
  streamed(steps, "insert.grad", rows * layers.back().n, true);
  for (std::size_t i = layers.size(); i-- > 0;) {
    steps.linear_backward(layers[i], InputGradient::kLocal, false);
    if (i > 0) streamed(steps, "activation.grad", rows * layers[i].k, true);
  }
  if (c.tower.projector_norm) steps.norm("norm.grad", c.shape.norm, rows, c.tower.projector_width(), true);
}

std::int64_t projector_parameters(const VisionTower& tower, std::int64_t norm_width) {
  std::int64_t count = tower.projector_norm ? 2 * norm_width : 0;
  std::int64_t width = tower.projector_width();
  for (const std::int64_t next : tower.projector) {
    count += width * next + (tower.projector_bias ? next : 0);
    width = next;
  }
  return count;
}

// The last one normalises patches before they are merged, taps after it.
std::int64_t all_projectors(const VisionTower& tower) {
  return projector_parameters(tower, tower.hidden) + tower.taps * projector_parameters(tower, tower.projector_width());
}

Block projectors(const Context& c) {
  const LocalDims& d = c.d;
  const std::int64_t rows = c.projector_rows();
  Block block;
  block.name = "vision.projector";
  StepList forward{d, c.options};
  StepList backward{d, c.options};
  std::int64_t inputs = 0;
  std::int64_t outputs = 0;
  std::int64_t widest = 0;
  for (const Linear& l : projector_layers(c)) {
    inputs += rows * l.k;
    outputs += rows * l.n;
    widest = std::max(widest, rows * (l.n + l.k) * d.bytes);
  }
  const std::int64_t copies = 1 + c.tower.taps;
  for (std::int64_t i = 0; i < copies; ++i) {
    project(c, forward);
    project_backward(c, backward);
  }
  block.forward = forward.take();
  block.backward = backward.take();
  const std::int64_t norm_input = c.tower.projector_norm ? rows * c.tower.projector_width() : 0;
  const std::int64_t activations = outputs - rows * c.tower.projector.back();
  block.saved = {{"inputs", Bytes{copies * (inputs * d.gemm_bytes + (norm_input + activations) * d.bytes)}}};
  block.forward_workspace = block.backward_workspace = Bytes{widest};
  block.weight_inputs = Bytes{copies * inputs * d.gemm_bytes};
  block.weight_gradients = Bytes{copies * outputs * d.gemm_bytes};
  block.parameters = all_projectors(c.tower);
  block.matrix_count = copies * static_cast<std::int64_t>(c.tower.projector.size()) * (c.tower.projector_bias ? 2 : 1) + (c.tower.projector_norm ? 2 * copies : 0);
  return block;
}

}  // namespace

VisionBlocks make_vision(const VisionTower& tower, const BlockOptions& options) {
  const Context c = context_of(tower, options);
  VisionBlocks result{patches(c), make_layer(c.shape, 0, c.options), projectors(c), 0};
  result.layer.name = "vision.layer";
  if (!c.d.sequence_parallel) return result;
  // Norms, and the biases behind the reductions, of this rank's tokens.
  result.partial_gradients = tower.layers * 6 * tower.hidden + result.projector.parameters;
  return result;
}

std::int64_t vision_parameters(const VisionTower& tower) {
  const ModelShape shape = encoder_shape(tower);
  return tower.patch_values * tower.hidden + (tower.patch_bias ? tower.hidden : 0) + tower.positions * tower.hidden + tower.extra_parameters +
         tower.layers * layer_parameters(shape, 0).total + all_projectors(tower);
}

double vision_flops(const VisionTower& tower) {
  const double h = wide(tower.hidden);
  const double patches = wide(tower.images) * wide(tower.patches());
  double projector = 0;
  std::int64_t width = tower.projector_width();
  for (const std::int64_t next : tower.projector) {
    projector += wide(width) * wide(next);
    width = next;
  }
  const double layer = 4 * h * h + 2 * h * wide(tower.ffn);
  const double products = patches * (wide(tower.layers) * layer + wide(tower.patch_values) * h) +
                          wide(tower.images) * wide(tower.tokens()) * wide(1 + tower.taps) * projector;
  const double scores = wide(tower.layers) * patches * wide(tower.patches()) * 2 * h;
  return 3 * 2 * (products + scores);
}

}  // namespace stepcast::workload
