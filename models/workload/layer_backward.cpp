#include "models/workload/layer_parts.hpp"

namespace stepcast::workload {

using plan::OpClass;
using plan::Pass;

namespace {

// The gradient passes the sum unchanged; dropout masks it, the bias collects it.
void residual_backward(const LayerContext& c, StepList& steps, const std::string& name,
                       int biases) {
  const LocalDims& d = c.d;
  const std::int64_t n = d.norm_rows * d.hidden;
  if (c.dropout())
    steps.add(name + ".dropout.grad", {OpClass::kElementwise, Pass::kBackward,
                                       static_cast<double>(n), n * (d.bytes + 1), n * d.bytes, 1});
  for (int i = 0; i < biases; ++i)
    bias_gradient(c, steps, name + ".bias_grad", d.norm_rows, d.hidden);
}

void mlp_half(const LayerContext& c, StepList& steps, InputGradient input_gradient, bool regather) {
  steps.linear_backward(c.down(), InputGradient::kLocal, false);
  activation_backward(c, steps, {"mlp", c.d.rows, c.d.up_width, c.d.ffn, c.shape.mlp_bias});
  steps.linear_backward(c.up(), input_gradient, regather);
}

void attention_half_to_qkv(const LayerContext& c, StepList& steps) {
  steps.linear_backward(c.out(), InputGradient::kLocal, false);
  attention_core_backward(c, steps);
  prepare_heads_backward(c, steps);
}

void norm_backward(const LayerContext& c, StepList& steps, const std::string& name) {
  steps.norm(name + ".grad", c.shape.norm, c.d.norm_rows, c.d.hidden, true);
}

// The branch's input gradient joins the one that came down the residual.
void join(const LayerContext& c, StepList& steps, const std::string& name) {
  steps.sum(name + ".grad", c.d.norm_rows * c.d.hidden, Pass::kBackward);
}

void sequential(const LayerContext& c, StepList& steps) {
  const bool regather = c.d.sequence_parallel;
  residual_backward(c, steps, "residual2", c.shape.mlp_bias && !c.experts ? 1 : 0);
  if (c.post_norms()) norm_backward(c, steps, "norm2.post");
  if (c.experts) {
    expert_half_backward(c, steps);
  } else {
    steps.gather("mlp.grad");
    mlp_half(c, steps, InputGradient::kReduced, regather);
  }
  norm_backward(c, steps, "norm2");
  join(c, steps, "residual2");

  residual_backward(c, steps, "residual1", has_output_bias(c.shape) ? 1 : 0);
  if (c.post_norms()) norm_backward(c, steps, "norm1.post");
  steps.gather("attention.grad");
  attention_half_to_qkv(c, steps);
  if (c.shape.latent)
    latent_projections_backward(c, steps);
  else
    steps.linear_backward(c.qkv(), InputGradient::kReduced, regather);
  norm_backward(c, steps, "norm1");
  join(c, steps, "residual1");
}

void parallel(const LayerContext& c, StepList& steps) {
  const bool regather = c.d.sequence_parallel;
  residual_backward(c, steps, "residual1",
                    (has_output_bias(c.shape) ? 1 : 0) + (c.shape.mlp_bias ? 1 : 0));
  steps.gather("block.grad");
  if (c.shared_norm()) {
    // One input, gathered again once; its two gradients are summed, then reduced once.
    mlp_half(c, steps, InputGradient::kLocal, regather);
    attention_half_to_qkv(c, steps);
    // With adapters, by the first half that needs it.
    steps.linear_backward(c.qkv(), InputGradient::kLocal, regather && steps.frozen() && !c.options.adapters->up);
    steps.sum("block.sum.grad", c.d.rows * c.d.hidden, Pass::kBackward);
    steps.reduce("block.grad");
  } else {
    mlp_half(c, steps, InputGradient::kReduced, regather);
    norm_backward(c, steps, "norm2");
    join(c, steps, "norm2");
    attention_half_to_qkv(c, steps);
    steps.linear_backward(c.qkv(), InputGradient::kReduced, regather);
  }
  norm_backward(c, steps, "norm1");
  join(c, steps, "residual1");
}

}  // namespace

void bias_gradient(const LayerContext& c, StepList& steps, const std::string& name,
                   std::int64_t rows, std::int64_t width, int parts) {
  if (steps.frozen()) return;
  const LocalDims& d = c.d;
  steps.add(name, {OpClass::kElementwise, Pass::kWeightGrad, static_cast<double>(rows * width),
                   rows * width * d.bytes + width * d.gradient_bytes, width * d.gradient_bytes,
                   parts * (1 + steps.accumulations(1))});
}

void activation_backward(const LayerContext& c, StepList& steps, const ActivationSize& size) {
  const LocalDims& d = c.d;
  const std::int64_t out = size.rows * size.out;
  const std::int64_t in = size.rows * size.up;
  Work work{.op = OpClass::kElementwise, .pass = Pass::kBackward};
  work.flops = 2 * activation_flops(c.shape.activation) * static_cast<double>(out) +
               (c.shape.gated_mlp ? 2.0 * static_cast<double>(out) : 0.0);
  work.read = (in + out) * d.bytes;
  work.written = in * d.bytes;
  if (!steps.fused() && c.shape.gated_mlp) {  // two products, then f'
    work.read = 6 * out * d.bytes;
    work.written = 3 * out * d.bytes;
    work.launches = 3;
  }
  work.launches *= size.parts;
  steps.add(size.name + ".activation.grad", work);
  if (size.bias) bias_gradient(c, steps, size.name + ".up.bias_grad", size.rows, size.up, size.parts);
}

std::vector<Step> layer_backward(const LayerContext& c) {
  StepList steps{c.d, c.options};
  if (c.shape.parallel_block)
    parallel(c, steps);
  else
    sequential(c, steps);
  return steps.take();
}

}  // namespace stepcast::workload
